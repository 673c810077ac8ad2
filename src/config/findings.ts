import { isResourceError } from '../core/errors.ts'
import { parseAddress } from '../core/uri.ts'
import type { Finding } from './problem.ts'
import type { configSchema } from './schema.ts'
import { partsOfRefusal, unknownKey } from './words.ts'
import { postPath } from './writing.ts'

/** What zod says is wrong with one value. */
type Issue = NonNullable<ReturnType<typeof configSchema.safeParse>['error']>['issues'][number]
/** A finding that may be about a key rather than its value. */
export type Placed = Finding & { readonly at?: 'key' | 'value' }

/** What an issue of zod's says, in our words and with its place. */
export function findingsOf(issue: Issue): readonly Placed[] {
  const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
  if (issue.code === 'unrecognized_keys') {
    const known = JSON.parse(issue.message) as readonly string[]
    return issue.keys.map((key) => ({ path: [...path, key], ...unknownKey(key, known), at: 'key' }))
  }
  if (issue.code === 'invalid_union' && issue.discriminator === undefined) {
    // The branch whose type was right has more to say than that the value is none of several types.
    const branch = issue.errors.find((inner) => inner.some(({ path: [first] }) => first !== undefined))
    if (branch !== undefined)
      return branch.flatMap((inner) => findingsOf({ ...inner, path: [...issue.path, ...inner.path] } as Issue))
  }
  return [{ path, ...partsOfRefusal(issue.message) }]
}

/** What is wrong with the addresses, each by itself and beside the others. */
export function addressFindings(addresses: readonly string[]): readonly Finding[] {
  const findings: Finding[] = []
  const seen: { readonly address: string; readonly text: string }[] = []
  for (const address of addresses) {
    const path = ['mounts', address]
    try {
      const { text } = parseAddress(address)
      const other = seen.find((mount) => text === mount.text || isBelow(text, mount.text) || isBelow(mount.text, text))
      seen.push({ address, text })
      if (other !== undefined)
        findings.push({
          path,
          message: `The address overlaps with ${JSON.stringify(other.address)}.`,
          fix: 'Give each mount an address of its own, neither at nor under another; "exclude" leaves a folder out of a mount.',
        })
    } catch (error) {
      if (!isResourceError(error)) throw error
      findings.push({
        path,
        message: `This is not an address. ${error.message}`,
        fix: 'Write one such as "file:///docs" or "docs://manual".',
      })
    }
  }
  return findings
}

/** Mounts that would be written to at the same place over HTTP. */
export function postingFindings(mounts: ReadonlyMap<string, unknown>): readonly Finding[] {
  const seen = new Map<string, string>()
  return [...mounts].flatMap(([address, mount]) => {
    if (!isAddress(address) || !isWritten(mount)) return []
    const place = postPath(address)
    const other = seen.get(place)
    seen.set(place, address)
    if (other === undefined) return []
    const message = `Results would be posted to it at ${place}, and to ${JSON.stringify(other)} as well.`
    return [{ path: ['mounts', address, 'write'], message, fix: 'Give one of them another address.' }]
  })
}

function isWritten(mount: unknown): boolean {
  return (
    typeof mount === 'object' &&
    mount !== null &&
    'provider' in mount &&
    mount.provider === 'results' &&
    'write' in mount
  )
}

function isAddress(text: string): boolean {
  try {
    parseAddress(text)
    return true
  } catch {
    return false
  }
}

function isBelow(address: string, other: string): boolean {
  return address.startsWith(`${other}/`)
}
