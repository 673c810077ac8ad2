import { describe, expect } from 'vitest'
import { identity } from './corpus/hostile-identity.ts'
import { folder, traversal, type UriCase } from './corpus/hostile-uris.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { type Expectation, expectOutcome } from './harness/oracles.ts'
import type { Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()

const sentences: Readonly<Record<Expectation, string>> = {
  NF: 'gets the same answer as an absent resource',
  BAD: 'is refused before any source is asked',
  ctl: 'is read',
}

/** How often sources were asked so far, apart from the control reads. */
async function callsMade(wire: Wire): Promise<number> {
  const { message } = await arena.read(wire, 'count://calls/made')
  const [content] = (message?.result?.contents ?? []) as readonly { readonly text: string }[]
  const { made, polluted } = JSON.parse(content?.text ?? '{}') as {
    readonly made: number
    readonly polluted: readonly string[]
  }
  expect(polluted, 'no property was added to all objects').toEqual([])
  return made
}

/** One test for each row, expectation and client. */
function apply(cases: readonly UriCase[]): void {
  const rows = new Map<string, UriCase[]>()
  for (const one of cases) rows.set(`${one.id} ${one.expect}`, [...(rows.get(`${one.id} ${one.expect}`) ?? []), one])
  for (const group of rows.values()) {
    const [{ id, expect: expected }] = group as readonly UriCase[] as readonly [UriCase]
    describe(`${group
      .map(({ what }) => what)
      .join('; ')
      .slice(0, 120)}`, () => {
      eachWire(wireNames, id)(`${sentences[expected]} over %s (${id})`, async (name) => {
        const wire = arena.wire(name)
        const before = await callsMade(wire)
        for (const { what, uri: make, text } of group) {
          const uri = make(arena.world.address)
          const answer = await arena.read(wire, uri)
          try {
            expectOutcome(wire, answer, expected, uri, text)
            if (expected !== 'ctl') await expectNoDirectory(wire, uri)
          } catch (error) {
            throw new Error(`${what}: ${JSON.stringify(uri).slice(0, 300)}: ${answer.raw.subarray(0, 300)}`, {
              cause: error,
            })
          }
        }
        if (expected === 'BAD') expect(await callsMade(wire), 'no source was asked').toBe(before)
      })
    })
  }
}

/** What cannot be read can be no directory either. */
async function expectNoDirectory(wire: Wire, uri: string): Promise<void> {
  const { message } = await arena.ask(wire, 'resources/directory/read', { uri })
  expect(message?.result).toBeUndefined()
  expect([-32602, -32002]).toContain(message?.error?.code)
}

describe('paths that leave the folder:', () => apply(traversal))
describe('files of a hostile folder:', () => apply(folder))
describe('invalid URIs:', () => apply(identity))

describe('further files of a hostile folder:', () => {
  eachWire(wireNames)('the path of a file with a final slash is refused over %s (PT33)', async (name) => {
    const answer = await arena.read(arena.wire(name), `${arena.world.address}/dir/f/`)
    expect(answer.message?.error).toMatchObject({ code: -32602, data: { reason: 'not-a-directory' } })
  })
})
