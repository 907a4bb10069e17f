"""Everything that exists to make a GPU faster, behind one seam: `accelerate`.

`accelerate(network)` switches a plain Wide ResNet to fused forward passes in place. Parameters,
buffers and their names stay the same, and without a supported GPU so do the numbers. Networks of
other kinds are left unchanged. From the seam down to the GPU:

- `fused_wide_resnet`: the forward pass of a whole network, and `accelerate`;
- `fused_pass`: chooses for every layer between a kernel and the plain layer;
- `batch_norm`, `synchronized`: batch norm in one pass, and over several processes;
- `convolution_operators`, `normalization_operators`: the kernels as PyTorch operators, with their
  shapes for the compiler and their gradients;
- `registry`: how operators are declared to PyTorch and its compiler;
- `convolution_triton`, `weight_gradient_triton`, `normalization_triton`: the kernels themselves;
- `device`, `layout`: where kernels run, and the memory layouts they share with the operators.
"""

from fullmatch.models.kernels.fused_wide_resnet import accelerate
from fullmatch.models.kernels.registry import register_operators
from fullmatch.models.kernels.synchronized import synchronize_batch_norms

__all__ = ["accelerate", "register_operators", "synchronize_batch_norms"]
