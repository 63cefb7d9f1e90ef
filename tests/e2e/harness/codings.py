# SPDX-License-Identifier: Apache-2.0
"""Content codings, decoded by the libraries that clients have: as far as the bytes go, so that a test can look into
a body that has not ended."""

import ctypes
import zlib


class Piece(ctypes.Structure):
    """ZSTD_inBuffer and ZSTD_outBuffer."""

    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t), ("pos", ctypes.c_size_t)]


def library(name, *functions):
    handle = ctypes.CDLL(name)
    for function in functions:
        getattr(handle, function).restype = ctypes.c_void_p
    return handle


def gunzip(data):
    decoder = zlib.decompressobj(31)
    plain = decoder.decompress(data)
    assert not decoder.unused_data
    return plain, decoder.eof


def unbrotli(data):
    lib = library("libbrotlidec.so.1", "BrotliDecoderCreateInstance")
    decoder = ctypes.c_void_p(lib.BrotliDecoderCreateInstance(None, None, None))
    room = ctypes.create_string_buffer(65536)
    left, at, plain = ctypes.c_size_t(len(data)), ctypes.c_char_p(data), b""
    result = 3  # more output
    while result == 3:
        out, free = ctypes.c_void_p(ctypes.addressof(room)), ctypes.c_size_t(len(room))
        result = lib.BrotliDecoderDecompressStream(
            decoder, ctypes.byref(left), ctypes.byref(at), ctypes.byref(free), ctypes.byref(out), None
        )
        plain += room.raw[: len(room) - free.value]
    lib.BrotliDecoderDestroyInstance(decoder)
    assert result in (1, 2) and left.value == 0, f"brotli: {result}, {left.value} bytes left"
    return plain, result == 1


def unzstd(data):
    lib = library("libzstd.so.1", "ZSTD_createDCtx")
    lib.ZSTD_decompressStream.restype = ctypes.c_size_t
    decoder = ctypes.c_void_p(lib.ZSTD_createDCtx())
    room = ctypes.create_string_buffer(65536)
    source, plain, result, full = Piece(data, len(data), 0), b"", 1, True
    while source.pos < source.size or full:
        target = Piece(ctypes.cast(room, ctypes.c_char_p), len(room), 0)
        result = lib.ZSTD_decompressStream(decoder, ctypes.byref(target), ctypes.byref(source))
        assert not lib.ZSTD_isError(ctypes.c_size_t(result)), "zstd: broken"
        plain += room.raw[: target.pos]
        full = target.pos == len(room)
    lib.ZSTD_freeDCtx(decoder)
    return plain, result == 0


DECODERS = {"gzip": gunzip, "br": unbrotli, "zstd": unzstd}


def decode_some(coding, data):
    """What can be read of `data` so far."""
    return DECODERS[coding](data)[0]


def decode(coding, data):
    """All of a complete body; None is no coding."""
    if coding is None:
        return data
    plain, ended = DECODERS[coding](data)
    assert ended, f"{coding}: the body has no end"
    return plain
