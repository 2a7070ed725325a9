"""The part of libpapi that counts another process's events, called through ctypes."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
from collections.abc import Sequence

#: From papi.h, unchanged since PAPI 5.
_NULL = -1
_DOMAIN, _LIB_VERSION, _INHERIT = 5, 21, 28
_DOM_ALL = 0xF
#: PAPI writes into a union of its options; the largest member of all versions is far below this.
_OPTION_BYTES = 4096

#: Releases whose functions and options are those used here.
_MAJORS = (7, 6, 5)
_FILES = ("libpapi.so", "libpapi.so.7.2", "libpapi.so.7.1", "libpapi.so.7.0", "libpapi.so.6.0", "libpapi.so.5.7")


class PapiCallError(Exception):
    """A call into libpapi failed; the text is PAPI's own."""

    def __init__(self, call: str, text: str) -> None:
        super().__init__(f"{call}: {text}")
        self.text = text


class LibraryMissingError(Exception):
    """There is no libpapi here, or none that can be used; the text says which."""


class Library:
    """An initialised libpapi; its functions by name, failures raised."""

    def __init__(self, file: str) -> None:
        try:
            self._c = ctypes.CDLL(file)
            self._c.PAPI_strerror.restype = ctypes.c_char_p
            # It wants to hear its own release to begin with, so one is tried after the other.
            releases = (major << 24 | minor << 16 for major in _MAJORS for minor in range(9, -1, -1))
            release = next((packed for packed in releases if self._c.PAPI_library_init(packed) == packed), None)
        except (OSError, AttributeError) as error:
            raise LibraryMissingError(f"{file} cannot be used ({error})") from error
        if release is None:
            tried = ", ".join(map(str, sorted(_MAJORS)))
            raise LibraryMissingError(f"{file} is of none of the major versions {tried} that crossperf knows")
        packed = self._c.PAPI_get_opt(_LIB_VERSION, None)
        shifts = (24, 16, 8, 0) if packed > 0 else (24, 16)
        self.version = ".".join(str((packed if packed > 0 else release) >> shift & 0xFF) for shift in shifts)

    def call(self, function: str, *arguments: object) -> int:
        """Return what a function returns, or raise if it is one of PAPI's error codes."""
        code = int(getattr(self._c, function)(*arguments))
        if code < 0:
            raise PapiCallError(function, (self._c.PAPI_strerror(code) or b"unknown error").decode(errors="replace"))
        return code


@functools.cache
def load() -> Library:
    """Return the libpapi of this machine, initialised once; raise `LibraryMissingError` if there is none."""
    linked = ctypes.util.find_library("papi")
    for file in dict.fromkeys([*_FILES, *([linked] if linked else [])]):
        try:
            ctypes.CDLL(file)
        except OSError:
            continue
        return Library(file)
    raise LibraryMissingError("libpapi is not installed")


class EventSet:
    """Events that are counted together, of this thread or of a process (`attach_to`) with all that it will start.

    With `kernel`, what the kernel does for the process counts as well.
    """

    def __init__(self, library: Library, attach_to: int | None = None, kernel: bool = False) -> None:
        self._library = library
        self._set = ctypes.c_int(_NULL)
        self.events: list[str] = []
        library.call("PAPI_create_eventset", ctypes.byref(self._set))
        try:
            library.call("PAPI_assign_eventset_component", self._set, 0)
            if kernel:
                self._option(_DOMAIN, 0, self._set.value, _DOM_ALL)
            if attach_to is not None:
                self._option(_INHERIT, self._set.value, 1)
                library.call("PAPI_attach", self._set, ctypes.c_ulong(attach_to))
        except PapiCallError:
            self.close()
            raise

    def _option(self, option: int, *values: int) -> None:
        buffer = ctypes.create_string_buffer(_OPTION_BYTES)
        for place, value in enumerate(values):
            ctypes.c_int.from_buffer(buffer, place * ctypes.sizeof(ctypes.c_int)).value = value
        self._library.call("PAPI_set_opt", option, buffer)

    def add(self, event: str) -> None:
        """Count one event more; raise if it does not exist or does not fit beside the others."""
        self._library.call("PAPI_add_named_event", self._set, event.encode())
        self.events.append(event)

    def remove(self, event: str) -> None:
        """Count one event less."""
        self._library.call("PAPI_remove_named_event", self._set, event.encode())
        self.events.remove(event)

    def start(self) -> None:
        """Start counting from 0."""
        self._library.call("PAPI_start", self._set)

    def stop(self) -> dict[str, float]:
        """Stop counting and return the counts."""
        counts = (ctypes.c_longlong * max(1, len(self.events)))()
        self._library.call("PAPI_stop", self._set, counts)
        return {event: float(count) for event, count in zip(self.events, counts, strict=False)}

    def close(self) -> None:
        """Give the counters back; a set that still counts is stopped first."""
        with contextlib.suppress(PapiCallError):  # it did not count
            self._library.call("PAPI_stop", self._set, None)
        with contextlib.suppress(PapiCallError):  # it was empty
            self._library.call("PAPI_cleanup_eventset", self._set)
        with contextlib.suppress(PapiCallError):
            self._library.call("PAPI_destroy_eventset", ctypes.byref(self._set))
        self.events = []


def group(library: Library, events: Sequence[str], kernel: bool = False) -> tuple[list[list[str]], dict[str, str]]:
    """Return events in groups that the processor counts together, and why each of the others does not count.

    Groups are tried on this thread: a set that children inherit is opened event by event, so that PAPI
    would not see that they do not fit, and the kernel would silently count each for a part of the time.
    """
    groups: list[list[str]] = []
    refused: dict[str, str] = {}
    waiting = list(events)
    while waiting:
        together = EventSet(library, kernel=kernel)
        later: list[str] = []
        try:
            for event in waiting:
                why = _try(together, event)
                if why is not None and together.events:
                    later.append(event)
                elif why is not None:
                    refused[event] = why
            fitting = list(together.events)
        finally:
            together.close()
        groups += [fitting] if fitting else []
        waiting = later
    return groups, refused


def _try(together: EventSet, event: str) -> str | None:
    """Add an event and count once with it; return why it does not work, the event taken out again."""
    try:
        together.add(event)
    except PapiCallError as error:
        return error.text
    try:
        together.start()
        together.stop()
    except PapiCallError as error:
        together.remove(event)
        return error.text
    return None
