/** Values written as text in a configuration and on the command line: durations, sizes, folders and addresses to listen on. */
import { homedir } from 'node:os'
import { resolve } from 'node:path'

const durations: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const sizes: Readonly<Record<string, number>> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }

/** A duration in milliseconds: a number is that, a text has a unit (`500ms`, `60s`, `30m`, `12h`, `1d`). */
export function parseDuration(value: string | number): number | undefined {
  return parseQuantity(value, durations)
}

/** A size in bytes: a number is that, a text has a unit (`512B`, `64KiB`, `16MiB`, `1GiB`). */
export function parseSize(value: string | number): number | undefined {
  const size = parseQuantity(value, sizes)
  return size === 0 ? undefined : size
}

function parseQuantity(value: string | number, units: Readonly<Record<string, number>>): number | undefined {
  const [, digits, unit = ''] = typeof value === 'number' ? [] : (/^(\d{1,15})([A-Za-z]+)$/.exec(value) ?? [])
  const factor = Object.hasOwn(units, unit) ? units[unit] : undefined
  const amount =
    typeof value === 'number' ? value : digits === undefined || factor === undefined ? -1 : Number(digits) * factor
  return Number.isSafeInteger(amount) && amount >= 0 ? amount : undefined
}

/** Returns the absolute path of a file or folder that a configuration names: relative to a folder, or by `~/` to the home folder. */
export function resolveFolder(name: string, from: string): string {
  return /^~(?=[\\/]|$)/.test(name) ? resolve(homedir(), name.slice(2)) : resolve(from, name)
}

/** Address that a server listens on. Port 0 selects any free port. */
export interface Listen {
  readonly host: string
  readonly port: number
}

/** Parses `[HOST:]PORT`: `8787` (the loopback), `127.0.0.1:8787`, `localhost:8787`, `[::1]:8787`. */
export function parseListen(value: string | number): Listen | undefined {
  const [, bracketed, plain, digits] =
    /^(?:(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):)?(\d{1,5})$/.exec(String(value)) ?? []
  const port = digits === undefined ? Number.NaN : Number(digits)
  return port <= 65_535 ? { host: bracketed ?? plain ?? '127.0.0.1', port } : undefined
}
