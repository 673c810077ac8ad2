import { describe, expect } from 'vitest'
import { identity } from './corpus/hostile-identity.ts'
import { folder, traversal, type UriCase } from './corpus/hostile-uris.ts'
import { useArena, wireNames } from './harness/arena.ts'
import { type Expectation, expectOutcome } from './harness/oracles.ts'
import type { Wire } from './harness/wire.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena()

const sentences: Readonly<Record<Expectation, string>> = {
  NF: 'get the same answer as an absent resource',
  BAD: 'are refused before any source is asked',
  ctl: 'are read',
}

/** The subject of each title, by row and expectation. */
const subjects: Readonly<Record<string, string>> = {
  'PT01 BAD': 'URIs with dot segments',
  'PT02 BAD': 'URIs with percent-encoded dot segments',
  'PT03 BAD': 'URIs with half-encoded dot segments',
  'PT04 BAD': 'URIs with a percent-encoded slash',
  'PT04 NF': 'URIs whose dots or slash are encoded twice',
  'PT06 BAD': 'URIs with a raw backslash',
  'PT06 NF': 'URIs with an encoded backslash in a name that does not exist',
  'PT06 ctl': 'URIs with an encoded backslash in a name that exists',
  'PT07 BAD': 'URIs with overlong UTF-8',
  'PT08 BAD': 'URIs with escapes that are not UTF-8',
  'PT08 NF': 'URIs with a percent sign that begins no escape, in a name that does not exist,',
  'PT09 BAD': 'URIs with a NUL',
  'PT11 BAD': 'URIs with empty segments',
  'PT12 BAD': 'paths and references without a whole scheme and authority',
  'PT12 ctl': 'file URIs with one slash',
  'PT13 ctl': 'file URIs of localhost',
  'PT13 BAD': 'file URIs of another host',
  'PT14 NF': 'URIs with a drive, device, stream or short name of Windows',
  'PT14 BAD': 'URIs with a drive and a backslash',
  'PT14 ctl': 'URIs of a file whose name looks like a drive',
  'PT16 NF': 'URIs with homes, variables, commands, globs and other paths that a shell would expand',
  'PT17 NF': 'links that lead out of the folder, or to excluded files,',
  'PT33 NF': 'files that are named as directories, and absent directories,',
  'PT33 ctl': 'directories',
  'PT37 NF': 'excluded files and directories',
  'PT38 NF': 'other spellings of excluded files',
  'PT38 BAD': 'spellings of excluded files with dots, empty segments, NULs or fragments',
  'PT43 ctl': 'files with unusual names',
  'PT43 NF': 'names that are too long, and a name with a percent sign that is not encoded,',
  'UR01 BAD': 'URIs with a user or password',
  'UR01 NF': 'URIs with an @ in an absent path',
  'UR02 NF': 'URIs with a port',
  'UR02 BAD': 'file URIs with a port',
  'UR03 BAD': 'URIs with a fragment',
  'UR03 ctl': 'URIs with an encoded # in a name that exists',
  'UR04 BAD': 'URIs with an undeclared, repeated or invalid query',
  'UR04 NF': 'URIs of absent files with a declared query',
  'UR04 ctl': 'URIs with a declared query, or with an encoded ? in a name that exists,',
  'UR06 ctl': 'URIs with capital letters in the scheme',
  'UR06 NF': 'URIs of denied files with capital letters in the scheme',
  'UR06 BAD': 'URIs with an invalid scheme',
  'UR07 ctl': 'URIs with capital letters in the authority',
  'UR07 NF': 'URIs of denied files with capital letters in the authority, and URIs with another authority,',
  'UR07 BAD': 'URIs with an encoded letter in the authority',
  'UR08 BAD': 'URIs with white space or invisible characters at an end or in the authority',
  'UR08 NF': 'URIs with an encoded space behind the name',
  'UR08 ctl': 'URIs with a space within the name',
  'UR09 BAD': 'URIs with tabs or line ends, raw or encoded,',
  'UR11 BAD': 'URIs with control characters, raw or encoded,',
  'UR12 ctl': 'URIs with characters beyond ASCII or brackets, raw or encoded,',
  'UR12 BAD': 'URIs with letters beyond ASCII in the authority',
  'UR13 BAD': 'URIs with a lone surrogate',
  'UR13 ctl': 'URIs with the replacement character',
  'UR14 BAD': 'URIs with a homograph of an authority',
  'UR14 NF': 'URIs with the ASCII form of a homograph',
  'UR16 ctl': 'URIs with encoded letters',
  'UR17 BAD': 'URIs of more than 8 KiB',
  'UR17 NF': 'URIs of absent files of nearly 8 KiB',
  'UR18 BAD': 'URIs with thousands of slashes, dots, parameters or signs',
  'UR18 NF': 'URIs of absent files with 4,000 segments',
  'UR19 BAD': 'texts that are not URIs, and URIs without a path,',
  'UR19 NF': 'data URIs',
  'UR21 BAD': 'URIs with a backslash, @ or quotation mark in the authority',
  'UR21 NF': 'URIs with two ports, a list of hosts or an open bracket',
  'UR22 NF': 'URIs of other schemes and of machines in the network',
  'UR23 NF': 'URIs with names of JavaScript properties',
  'UR23 ctl': 'files called __proto__ and constructor',
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
    const subject = subjects[`${id} ${expected}`]
    if (subject === undefined) throw new Error(`${id} ${expected} has no subject for its title`)
    eachWire(wireNames)(`${subject} ${sentences[expected]} over %s (${id})`, async (name) => {
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
  }
}

/** What cannot be read can be no directory either. */
async function expectNoDirectory(wire: Wire, uri: string): Promise<void> {
  const { message } = await arena.ask(wire, 'resources/directory/read', { uri })
  expect(message?.result).toBeUndefined()
  expect([-32602, -32002]).toContain(message?.error?.code)
}

describe('paths:', () => apply(traversal))
describe('files of a hostile folder:', () => apply(folder))
describe('parts and characters of URIs:', () => apply(identity))

describe('further files of a hostile folder:', () => {
  eachWire(wireNames)('the path of a file with a final slash is refused over %s (PT33)', async (name) => {
    const answer = await arena.read(arena.wire(name), `${arena.world.address}/dir/f/`)
    expect(answer.message?.error).toMatchObject({ code: -32602, data: { reason: 'not-a-directory' } })
  })
})
