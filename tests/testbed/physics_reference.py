"""The checksums of the workloads of physics and simulation, worked out a second time in numpy and plain Python."""

import itertools
import math
from typing import Any

import numpy as np

from .random_numbers import random_bits, random_unit

Parameters = dict[str, Any]


def _weights(n: int, period: int = 7) -> np.ndarray:
    return 1 + np.arange(n) % period


def _draw(n: int, seed: int) -> np.ndarray:
    return random_unit(np.arange(n), seed)


def _precision(parameters: Parameters) -> type:
    return np.float32 if parameters.get("precision") == "float" else np.float64


def fft(parameters: Parameters) -> float:
    n, batch = parameters["size"], parameters["batch"]
    signal = (_draw(n * batch, 1) + 1j * _draw(n * batch, 2)).reshape(batch, n)
    power = np.abs(np.fft.fft(signal, axis=1).ravel()) ** 2
    return float((power * _weights(n * batch)).mean())


def nbody(parameters: Parameters) -> float:
    n = parameters["size"]
    at = np.stack([_draw(n, seed) for seed in (1, 2, 3)], axis=1)
    mass, speed, dt = 0.5 + _draw(n, 4), np.zeros((n, 3)), 0.01 / n
    for _ in range(parameters["steps"]):
        apart = at[None] - at[:, None]
        pull = mass / ((apart**2).sum(axis=2) + 0.01) ** 1.5
        speed += dt * (pull[:, :, None] * apart).sum(axis=1)
        at += dt * speed
    return float(1e6 * ((speed**2 @ [1, 2, 3]) * _weights(n)).mean())


def lennard_jones(parameters: Parameters) -> float:
    n, spacing = parameters["size"], 1.12
    side = math.ceil(n ** (1 / 3) - 1e-9)
    length = spacing * side
    cutoff = min(spacing * parameters["per_cell"] ** (1 / 3), length / 3)
    i = np.arange(n)
    sites = np.stack([i % side, i // side % side, i // side**2], axis=1)
    at = spacing * (sites + 0.4 + 0.2 * np.stack([_draw(n, seed) for seed in (1, 2, 3)], axis=1))
    apart = at[:, None] - at[None]
    apart -= length * np.round(apart / length)
    square = (apart**2).sum(axis=2)
    near = np.where((square < cutoff**2) & (square > 0), 1 / np.where(square > 0, square, 1), 0)
    force = ((near**4 * (near**3 - 0.5))[:, :, None] * apart).sum(axis=1)
    energy = (near**3 * (near**3 - 1)).sum(axis=1)
    return float(((force**2 @ [1, 2, 3] + energy**2) * _weights(n)).mean())


def pic_push(parameters: Parameters) -> float:
    n, grid = parameters["size"], parameters["grid"]
    fields = [(_draw(grid * grid, seed) - shift).reshape(grid, grid) for seed, shift in ((1, 0.5), (2, 0.5), (3, 0.0))]
    at = np.stack([_draw(n, 4), _draw(n, 5)]) * grid
    speed = np.stack([_draw(n, 6), _draw(n, 7)]) - 0.5
    for _ in range(parameters["steps"]):
        cell = np.floor(at).astype(int)
        x, y = at - cell
        west, south = cell % grid
        east, north = (cell + 1) % grid
        ex, ey, bz = (
            (f[south, west] * (1 - x) + f[south, east] * x) * (1 - y)
            + (f[north, west] * (1 - x) + f[north, east] * x) * y
            for f in fields
        )
        push = 0.05 * np.stack([ex, ey])
        # The turn of the Boris push is a rotation by twice the angle whose tangent is t.
        angle = 2 * np.arctan(0.05 * bz)
        turned = (speed[0] + push[0] + 1j * (speed[1] + push[1])) * np.exp(-1j * angle)
        speed = np.stack([turned.real, turned.imag]) + push
        at = (at + 0.1 * speed) % grid
    edge = np.abs(at / grid - 0.5)
    return float(((edge[0] + 2 * edge[1] + speed[0] ** 2 + 2 * speed[1] ** 2) * _weights(n)).mean())


def pic_deposit(parameters: Parameters) -> float:
    n, grid = parameters["size"], parameters["grid"]
    spread = np.where(_draw(n, 3) < parameters["clustered"], 1, grid)
    x, y = (np.floor(_draw(n, seed) * spread * 1024).astype(int) for seed in (1, 2))
    charge = np.zeros((grid, grid), dtype=np.int64)
    for up, right in itertools.product((0, 1), (0, 1)):
        share_x = x % 1024 if right else 1024 - x % 1024
        share_y = y % 1024 if up else 1024 - y % 1024
        np.add.at(charge, ((y // 1024 + up) % grid, (x // 1024 + right) % grid), share_x * share_y)
    return float((charge.ravel() * _weights(grid * grid, 13)).sum())


def mc_transport(parameters: Parameters) -> float:
    n, table, collisions = parameters["size"], parameters["table"], parameters["collisions"]
    energies = 20 * ((np.arange(table) + 0.5 * _draw(table, 1)) / (table - 1)) ** 3
    totals = 0.5 + _draw(table, 2)
    absorptions = 0.2 * totals * _draw(table, 3)
    score = 0
    for i in range(n):
        x, energy, cosine = 20 * random_unit(i, 4), 20 * random_unit(i, 5), 2 * random_unit(i, 6) - 1
        for k in range(collisions):
            draw = (i * collisions + k) * 4
            total, absorption = np.interp(energy, energies, totals), np.interp(energy, energies, absorptions)
            flight = -math.log(1 - random_unit(draw, 7)) / total
            x += flight * cosine
            if not 0 <= x < 20:
                score += 1000 if x < 0 else 3000
                break
            place = 1 + int(x * 3.2)
            score += place * int(flight * 1024)
            if random_unit(draw + 1, 7) * total < absorption:
                score += place * 1000
                break
            energy *= 0.2 + 0.8 * random_unit(draw + 2, 7)
            cosine = 2 * random_unit(draw + 3, 7) - 1
    return float(score)


def mc_options(parameters: Parameters) -> float:
    n, steps = parameters["size"], parameters["steps"]
    u, v = 1 - _draw(n * steps, 1), _draw(n * steps, 2)
    normal = (np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)).reshape(n, steps)
    growth = (0.03 - 0.5 * 0.25**2) / steps + 0.25 / math.sqrt(steps) * normal
    prices = 100 * np.exp(np.cumsum(growth, axis=1))
    payoff = np.maximum(prices.mean(axis=1) - 100, 0)
    return float(math.exp(-0.03) * payoff.mean() + 1e-2 * (payoff**2).mean())


def hydro(parameters: Parameters) -> float:
    n = parameters["size"]
    left = np.arange(n) < n // 2
    mass = np.where(left, 1.0, 0.125) * (1 + 0.1 * _draw(n, 1)) / n
    energy = np.where(left, 2.5, 2.0) * (1 + 0.1 * _draw(n, 2))
    x, u = np.arange(n + 1) / n, np.zeros(n + 1)
    for _ in range(parameters["steps"]):
        volume, jump = np.diff(x), np.diff(u)
        density, sound = mass / volume, np.sqrt(1.4 * 0.4 * energy)
        pressure = 0.4 * density * energy + np.where(jump < 0, density * (1.5 * jump**2 - 0.5 * sound * jump), 0)
        dt = 0.3 / ((sound + 4 * np.abs(jump)) / volume).max()
        u[1:-1] -= dt * np.diff(pressure) / (0.5 * (mass[1:] + mass[:-1]))
        x += dt * u
        energy -= dt * pressure * np.diff(u) / mass
    return float(((energy + x[1:] + 10 * u[:-1] ** 2) * _weights(n)).mean())


def lattice_boltzmann(parameters: Parameters) -> float:
    n, real = parameters["size"], _precision(parameters)
    density = (1 + 0.1 * _draw(n * n, 1)).astype(real).reshape(n, n)
    ux, uy = ((0.1 * (_draw(n * n, seed) - 0.5)).astype(real).reshape(n, n) for seed in (2, 3))
    directions = [(dx, dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    weight = {0: 4 / 9, 1: 1 / 9, 2: 1 / 36}

    def equilibrium(dx: int, dy: int) -> np.ndarray:
        along = dx * ux + dy * uy
        return weight[dx * dx + dy * dy] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (ux**2 + uy**2))

    f = [equilibrium(dx, dy) for dx, dy in directions]
    for _ in range(parameters["steps"]):
        f = [np.roll(stream, (dy, dx), axis=(0, 1)) for stream, (dx, dy) in zip(f, directions, strict=True)]
        density = sum(f)
        ux, uy = (sum(d[k] * s for s, d in zip(f, directions, strict=True)) / density for k in (0, 1))
        f = [stream + 1.2 * (equilibrium(*d) - stream) for stream, d in zip(f, directions, strict=True)]
    return float(((density - 1 + 100 * ux**2 + 200 * uy**2).ravel() * _weights(n * n)).mean())


def fem_mass(parameters: Parameters) -> float:
    size, order = parameters["size"], parameters["order"]
    side, points = size // order, order + 2
    z, w = np.polynomial.legendre.leggauss(points)
    z, w = (z[::-1] + 1) / 2, w[::-1] / 2
    nodes = np.arange(order + 1) / order
    # The column of a node is the polynomial that is 1 there and 0 at the others.
    at = np.vander(z, order + 1) @ np.linalg.inv(np.vander(nodes))
    values = (0.5 + _draw((size + 1) ** 2, 1)).reshape(size + 1, size + 1)
    shape = (0.5 + _draw((side * points) ** 2, 2)).reshape(side, side, points, points)
    out = np.zeros_like(values)
    for j, i in itertools.product(range(side), range(side)):
        place = np.s_[j * order : (j + 1) * order + 1, i * order : (i + 1) * order + 1]
        out[place] += at.T @ (np.outer(w, w) * shape[j, i] * (at @ values[place] @ at.T)) @ at
    return float((out.ravel() ** 2 * _weights(out.size)).mean())


def sweep(parameters: Parameters) -> float:
    n, angles = parameters["size"], parameters["angles"]
    cosine = 0.1 + 0.8 * _draw(angles, 1)
    absorption = (1 + 10 * _draw(n * n, 2)).reshape(n, n)
    source = _draw(n * n, 3).reshape(n, n)
    flux = np.zeros((n, n))
    for a in range(angles):
        flip = np.s_[:: -1 if a & 2 else 1, :: -1 if a & 1 else 1]
        sigma, emit, mean = absorption[flip], source[flip], np.zeros((n, n))
        across, along = 2 * n * cosine[a], 2 * n * math.sqrt(1 - cosine[a] ** 2)
        from_y = np.zeros(n)
        for row in range(n):
            from_x = 0.0
            for column in range(n):
                inflow = across * from_x + along * from_y[column]
                psi = (emit[row, column] + inflow) / (sigma[row, column] + across + along)
                from_x, from_y[column] = max(2 * psi - from_x, 0.0), max(2 * psi - from_y[column], 0.0)
                mean[row, column] = psi
        flux += mean[flip] / angles
    return float((flux.ravel() * _weights(n * n)).mean())


def mandelbrot(parameters: Parameters) -> float:
    """Agrees to the last unit for few iterations only: products are rounded here before they are added."""
    n, real = parameters["size"], _precision(parameters)
    width = real(2.5 / n)
    total = 0
    for row, column in itertools.product(range(n), range(n)):
        cx, cy = column * width + real(-1.875), row * width + real(-1.25)
        x, y, k = real(0), real(0), 0
        while k < parameters["iterations"] and x * x + y * y <= 4:
            x, y = x * x - y * y + cx, 2 * x * y + cy
            k += 1
        total += k * (1 + (row * n + column) % 7)
    return float(total)


def _philox(counter: int) -> tuple[int, int]:
    a, b, c, d = counter & 0xFFFFFFFF, counter >> 32, 0, 0
    for turn in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        key = (7 + turn * 0x9E3779B9) & 0xFFFFFFFF, (11 + turn * 0xBB67AE85) & 0xFFFFFFFF
        a, b, c, d = second >> 32 ^ b ^ key[0], second & 0xFFFFFFFF, first >> 32 ^ d ^ key[1], first & 0xFFFFFFFF
    return a, c


def random_numbers(parameters: Parameters) -> float:
    n, kind = parameters["size"], parameters["kind"]
    if kind == "splitmix":
        return float(
            sum(int(word >> np.uint64(40)) * (1 + i % 8) for i, word in enumerate(random_bits(np.arange(n), 1)))
        )
    if kind == "philox":
        words = (_philox(i) for i in range(n))
        return float(sum((c >> 8 ^ a & 0xFFFFFF) * (1 + i % 8) for i, (a, c) in enumerate(words)))
    if kind == "box_muller":
        radius, angle = np.sqrt(-2 * np.log(1 - _draw(n, 1))), 2 * np.pi * _draw(n, 2)
        return float((np.abs(radius * np.cos(angle)) + 2 * np.abs(radius * np.sin(angle))).sum())
    total = 0.0
    for i in range(n):
        draws = 2 * random_unit(np.arange(i * 64, i * 64 + 64), 3) - 1
        x, y = next((x, y) for x, y in zip(draws[::2], draws[1::2], strict=True) if 0 < x * x + y * y < 1)
        square = x * x + y * y
        total += (abs(x) + 2 * abs(y)) * math.sqrt(-2 * math.log(square) / square)
    return total


def _read_tokens(text: str) -> int:
    state, code, value, word = "blank", 1, 0, 0xFFFFFFFF
    for letter in text:
        c = ord(letter)
        if state == "string":
            if letter == "\\":
                state = "escape"
            elif letter == '"':
                code, state = code * 31 + value, "blank"
            else:
                value = value * 17 + c
        elif state == "escape":
            value, state = value + (c ^ 64), "string"
        elif state == "comment":
            if letter == "\n":
                code, state = code + 7, "blank"
        elif letter.islower():
            if state == "number":
                code = (code ^ value) * 13
            value, state = (value * 5 + c if state == "word" else c), "word"
        elif letter.isdigit():
            if state == "word":
                value ^= c
            else:
                value, state = int(letter) + (value * 10 if state == "number" else 0), "number"
        else:
            if state == "word":
                code = code * 37 + value
            elif state == "number":
                code = code * 41 ^ value
            if letter == '"':
                value, state = 0, "string"
            else:
                state = "comment" if letter == "#" else "blank"
        code, value = code & word, value & word
    number = ["blank", "word", "number", "string", "escape", "comment"].index(state)
    return (code * 43 + value + number) & word


def state_machine(parameters: Parameters) -> float:
    n, length = parameters["size"], parameters["length"]
    share, other = int(parameters["branchiness"] * 65536), '  0123456789""\\#\n.'
    bits = [int(b) for b in random_bits(np.arange(n * length), 1)]
    text = "".join(other[(b >> 16) % len(other)] if b & 65535 < share else chr(ord("a") + (b >> 32) % 26) for b in bits)
    return float(sum(_read_tokens(text[i * length : (i + 1) * length]) * (1 + i % 7) for i in range(n)))
