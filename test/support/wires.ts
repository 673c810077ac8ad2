import { test } from 'vitest'
import { hasTurn, someOf, volume } from './volume.ts'

// A row of a table is tried over two wires (a transport and a revision) in full volume, and otherwise over its share of them, which
// is at least one. Which ones follows from the row, so that the rows together are tried over each. Not so a row about the wire itself,
// such as its headers, its framing or the agreement on a revision: that one is always tried over each.

/** The share of wires that a row is tried over. */
export const wireShare = (wires: readonly unknown[]): number => (volume < 1 ? volume : Math.min(1, 2 / wires.length))

/** As `test.each(wires)`, over the wires of the row. `row` is its name, where the title alone is that of others, too. */
export function eachWire<W extends string>(wires: readonly W[], row?: string) {
  return (title: string, run: (wire: W) => unknown, timeout?: number): void =>
    test.each([...someOf(row === undefined ? title : `${row} ${title}`, wires, 1, wireShare(wires))])(
      title,
      async (wire) => void (await run(wire as W)),
      timeout,
    )
}

/**
 * `test`, for the rows of one group that is there for each wire: a row is tried where the wire is one of its own. The rows take the
 * wires in turn, so that no group is empty that has as many rows as there are wires.
 */
export function testOn<W extends string>(wire: W, wires: readonly W[]) {
  let rows = 0
  return (title: string, run: () => unknown, timeout?: number): void => {
    if (hasTurn(rows++, wires.indexOf(wire), wires.length, wireShare(wires)))
      test(title, async () => void (await run()), timeout)
  }
}
