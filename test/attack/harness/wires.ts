import { test } from 'vitest'
import { hasTurn, someOf, volume } from '../../support/volume.ts'

// A row of a table is tested over two wires (a transport and a revision) in full volume, and otherwise over its share of them, at
// least one. The row decides which ones, so that all rows together use each wire. A row about the wire itself, such as its headers,
// framing or negotiation, is always tested over each.

/** Returns the share of wires for a row. */
export const wireShare = (wires: readonly unknown[]): number => (volume < 1 ? volume : Math.min(1, 2 / wires.length))

/** Like `test.each(wires)`, over the wires of the row. `row` names the row if other rows have the same title. */
export function eachWire<W extends string>(wires: readonly W[], row?: string) {
  return (title: string, run: (wire: W) => unknown, timeout?: number): void =>
    test.each([...someOf(row === undefined ? title : `${row} ${title}`, wires, 1, wireShare(wires))])(
      title,
      async (wire) => void (await run(wire as W)),
      timeout,
    )
}

/**
 * Returns `test` for the rows of a group that exists for each wire: a row runs if the wire is one of its own. The rows take
 * turns, so no group is empty if it has as many rows as there are wires.
 */
export function testOn<W extends string>(wire: W, wires: readonly W[]) {
  let rows = 0
  return (title: string, run: () => unknown, timeout?: number): void => {
    if (hasTurn(rows++, wires.indexOf(wire), wires.length, wireShare(wires)))
      test(title, async () => void (await run()), timeout)
  }
}
