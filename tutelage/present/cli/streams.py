"""Standard output and error that never end a command: closed, full, no longer read, or of few letters."""

import codecs
import errno
import io
import os
import sys
import unicodedata
from typing import Any, TextIO

_PLAIN = {"–": "-", "−": "-", "─": "-", "━": "=", "│": "|", "┤": "|", "±": "+/-", "≤": "<=", "≥": ">=", "…": "..."}


class Sink(io.RawIOBase):
    """The bytes of a stream, UTF-8 on their way in. When they cannot be written any more, the rest is let go.

    `trouble` says why. Where the stream has another encoding, letters that it lacks are written in others.
    """

    def __init__(self, stream: TextIO):
        buffer: Any = stream.buffer
        self.stream = stream  # which would close its bytes if it were let go
        self.raw, self.encoding = getattr(buffer, "raw", buffer), stream.encoding
        self.trouble: OSError | None = None
        self._foreign = codecs.lookup(self.encoding).name != "utf-8"
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return bool(self.raw.isatty())

    def fileno(self) -> int:
        return int(self.raw.fileno())

    def write(self, data: Any) -> int:
        count, rest = len(data), memoryview(self._spelt(bytes(data)))
        try:
            while rest and self.trouble is None:
                rest = rest[self.raw.write(rest) or 0 :]
        except OSError as error:
            self.trouble = error
        return count

    def _spelt(self, data: bytes) -> bytes:
        if not self._foreign:
            return data
        return "".join(spelt(letter, self.encoding) for letter in self._decoder.decode(data)).encode(
            self.encoding, "replace"
        )


def spelt(letter: str, encoding: str) -> str:
    """A letter in those that an encoding has.

    ```python
    >>> from tutelage.present.cli.streams import spelt
    >>> "".join(spelt(letter, "ascii") for letter in "0.5 ± 0.1 – é ⡠")
    '0.5 +/- 0.1 - e *'

    ```
    """
    try:
        letter.encode(encoding)
        return letter
    except UnicodeEncodeError:
        if "\u2800" <= letter <= "\u28ff":  # the dots of a plot
            return "*"
        return _PLAIN.get(letter) or unicodedata.normalize("NFKD", letter)[:1]


def opened(stream: TextIO) -> tuple[TextIO, Sink]:
    """A stream in place of a standard one, and where its bytes go."""
    sink = Sink(stream)
    text = io.TextIOWrapper(
        io.BufferedWriter(sink), "utf-8", "surrogateescape", line_buffering=bool(stream.line_buffering)
    )  # fmt: skip
    return text, sink


def begin() -> Sink:
    """Take over standard output and error; whoever has closed the output is told so, and nothing is begun."""
    if sys.stderr is None:
        # Otherwise the next file that is opened gets its number, and compilers write their warnings into it.
        os.open(os.devnull, os.O_WRONLY)
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    else:
        sys.stderr, _ = opened(sys.stderr)
    if sys.stdout is None:
        print("tutelage: Standard output is closed; send it to a file or to /dev/null.", file=sys.stderr, flush=True)
        raise SystemExit(2)
    sys.stdout, sink = opened(sys.stdout)
    return sink


def ended(sink: Sink, code: Any) -> Any:
    """The exit code: that of the command, unless what it said is lost. A reader that has gone had heard enough."""
    sys.stdout.flush()
    lost = sink.trouble
    if lost is None or lost.errno == errno.EPIPE:
        return code
    print(
        f"tutelage: Standard output cannot be written ({lost.strerror}); what was computed is kept.",
        file=sys.stderr,
        flush=True,
    )
    return code or 2
