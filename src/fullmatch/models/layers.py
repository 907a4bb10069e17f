"""The layers of any network, from its input to its head, and their learning rates."""

from torch import Tensor, nn

CONTAINERS = (nn.Sequential, nn.ModuleList)
WRAPPER = 0.5  # share of the parameters from which a part is looked into
NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm)


def layer_scales(network: nn.Module, decay: float) -> dict[Tensor, float]:
    """Factors of the learning rate: 1 for the last layer, times `decay` for each one before it.

    Layers close to the input have learned what all pictures share, and should change least.
    """
    if decay == 1:
        return {}
    layers = list_layers(network)
    return {
        parameter: decay**distance
        for distance, layer in enumerate(reversed(layers))
        for parameter in layer
    }


def list_layers(network: nn.Module) -> list[list[nn.Parameter]]:
    """Parameters by layer: blocks of the largest part are layers, a norm belongs to its neighbor.

    Found from the order of the parts, which networks list from input to output.
    """
    layers: list[list[nn.Parameter]] = []
    total = count_parameters(network)
    for part in network.children():
        if isinstance(part, CONTAINERS):
            for block in part.children():
                add_layer(layers, block)
        elif count_parameters(part) > WRAPPER * total and count_parameters(*part.children()):
            layers += list_layers(part)
        else:
            add_layer(layers, part)
    own = list(network.parameters(recurse=False))  # such as the positions of a transformer
    if own and layers:
        layers[0] += own
    elif own:
        layers = [own]
    return layers


def add_layer(layers: list[list[nn.Parameter]], part: nn.Module) -> None:
    """A layer of its own, unless it is the norm of the one before."""
    parameters = list(part.parameters())
    if parameters and layers and isinstance(part, NORMS):
        layers[-1] += parameters
    elif parameters:
        layers.append(parameters)


def count_parameters(*modules: nn.Module) -> int:
    """How many tensors, since their sizes say little about depth."""
    return sum(1 for module in modules for _ in module.parameters())
