"""TensorBoard: event files in the run folder, without TensorFlow."""

import io
import time
from collections.abc import Mapping

from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.text.metadata import create_summary_metadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from fullmatch.tracking.tracker import Outcome, Setting, TrackedRun

FOLDER = "tensorboard"  # in the run folder


class TensorBoard:
    """Writes what `tensorboard --logdir runs` shows."""

    def begin(self, run: TrackedRun) -> str:
        self.writer = EventFileWriter(str(run.folder / FOLDER))
        self.step = run.step
        # After a resume: hides what an earlier process has written after this step.
        start = run.step + 1 if run.step else 0
        self.add(Event(session_log=SessionLog(status=SessionLog.START)), start)
        self.add_text("settings", describe_settings(run.settings), run.step)
        return FOLDER

    def log(self, values: Mapping[str, float], step: int) -> None:
        scalars = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self.add(Event(summary=Summary(value=scalars)), step)
        self.step = step

    def finish(self, outcome: Outcome) -> None:
        self.add_text("result", outcome.summary, self.step)
        for path in outcome.figures:
            with Image.open(path) as image:
                buffer = io.BytesIO()
                image.save(buffer, "PNG")
                picture = Summary.Image(
                    width=image.width, height=image.height, encoded_image_string=buffer.getvalue()
                )
            value = Summary.Value(tag=f"figures/{path.stem}", image=picture)
            self.add(Event(summary=Summary(value=[value])), self.step)

    def close(self) -> None:
        self.writer.close()

    def add_text(self, tag: str, text: str, step: int) -> None:
        tensor = TensorProto(
            dtype=DT_STRING,
            string_val=[text.encode()],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        metadata = create_summary_metadata(display_name=tag, description="")
        value = Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor)
        self.add(Event(summary=Summary(value=[value])), step)

    def add(self, event: Event, step: int) -> None:
        event.step, event.wall_time = step, time.time()
        self.writer.add_event(event)


def describe_settings(settings: Mapping[str, Setting]) -> str:
    """A Markdown table."""
    rows = [f"| {name} | {value} |" for name, value in settings.items()]
    return "\n".join(["| setting | value |", "| --- | --- |", *rows])


def make() -> TensorBoard:
    return TensorBoard()
