import { isResourceError } from '../core/errors.ts'
import { memberOf, objectOf } from '../core/kit/object.ts'
import { overviewUri } from '../core/meta.ts'
import { type Address, isOverlapping, parseAddress } from '../core/uri.ts'
import { sourceNamed } from '../providers/index.ts'
import { partsOfRefusal, unknownKeyRefusal } from '../schema/refusals.ts'
import type { SchemaIssue } from './explain.ts'
import type { Finding } from './problem.ts'
import { clientsSchema } from './schema.ts'
import { postPath } from './writing.ts'

type KeyFinding = Finding & { readonly at?: 'key' | 'value' }

/** An issue may be several findings, such as one for each unknown key. */
export function issueFindings(issue: SchemaIssue): readonly KeyFinding[] {
  const path = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
  if (issue.code === 'unrecognized_keys') {
    const keys = JSON.parse(issue.message) as readonly string[]
    return issue.keys.map((key) => ({ path: [...path, key], ...unknownKeyRefusal(key, keys), at: 'key' }))
  }
  if (issue.code === 'invalid_union' && issue.discriminator === undefined) {
    // The branch of the union whose type matched gives a better message than "none of several types".
    const branch = issue.errors.find((inner) => inner.some(({ path: [first] }) => first !== undefined))
    if (branch !== undefined)
      return branch.flatMap((inner) => issueFindings({ ...inner, path: [...issue.path, ...inner.path] } as SchemaIssue))
  }
  return [{ path, ...partsOfRefusal(issue.message) }]
}

export function addressFindings(addresses: readonly string[]): readonly Finding[] {
  const findings: Finding[] = []
  const earlierAddresses: { readonly address: string; readonly parsed: Address }[] = []
  for (const address of addresses) {
    const path = ['mounts', address]
    try {
      const mountAddress = parseAddress(address)
      const other = earlierAddresses.find((mount) => isOverlapping(mountAddress, mount.parsed))
      earlierAddresses.push({ address, parsed: mountAddress })
      if (other !== undefined)
        findings.push({
          path,
          message:
            other.parsed.text === mountAddress.text && other.address !== address
              ? `The address overlaps with ${JSON.stringify(other.address)}: both are ${mountAddress.text}.`
              : `The address overlaps with ${JSON.stringify(other.address)}.`,
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

export function overviewFindings(config: unknown, addresses: readonly string[]): readonly Finding[] {
  if (memberOf(config, 'overview') === false) return []
  const own = parseAddress(overviewUri)
  return addresses
    .filter((address) => isAddress(address) && isOverlapping(parseAddress(address), own))
    .map((address) => ({
      path: ['mounts', address],
      message: `The address overlaps with the overview of the server, ${overviewUri}.`,
      fix: 'Choose another address, or turn the overview off: "overview": false.',
    }))
}

export function postingFindings(mounts: ReadonlyMap<string, unknown>): readonly Finding[] {
  const keysByAddress = new Map<string, string>()
  return [...mounts].flatMap(([address, mount]) => {
    const writers: unknown = sourceNamed(memberOf(mount, 'provider'))?.writers?.(objectOf(mount))
    const isWritten = Array.isArray(writers) && writers.length > 0
    if (!isAddress(address) || !isWritten) return []
    const path = postPath(address)
    const other = keysByAddress.get(path)
    keysByAddress.set(path, address)
    if (other === undefined) return []
    const message = `Clients would post results for this mount to ${path}, which is also the path for ${JSON.stringify(other)}.`
    return [{ path: ['mounts', address, 'write'], message, fix: 'Give one of the two mounts another address.' }]
  })
}

/** Returns the name of the option with the mounts that a search covers; `undefined` for a mount that is no search. */
export function searchOption(mount: unknown): string | undefined {
  return sourceNamed(memberOf(mount, 'provider'))?.searches?.option
}

/** Finds searches over missing mounts or other searches, and searches over all mounts if none can be searched. */
export function searchFindings(mounts: ReadonlyMap<string, unknown>): readonly Finding[] {
  const textOf = (address: string) => (isAddress(address) ? parseAddress(address).text : undefined)
  const providers = new Map([...mounts].map(([address, mount]) => [textOf(address), memberOf(mount, 'provider')]))
  return [...mounts].flatMap(([address, mount]) => {
    const option = searchOption(mount)
    if (option === undefined) return []
    const over = memberOf(mount, option)
    if (over === '*' && [...providers.values()].every((name) => sourceNamed(name)?.isUnsearched === true)) {
      const fix = 'Add a mount that can be searched, or remove this search.'
      return [{ path: ['mounts', address, option], message: 'No mount of this configuration can be searched.', fix }]
    }
    return (Array.isArray(over) ? over : []).flatMap((one: unknown, index) => {
      if (typeof one !== 'string') return []
      const providerName = isAddress(one) ? providers.get(textOf(one)) : undefined
      const isSearch = sourceNamed(providerName)?.searches !== undefined
      if (providerName !== undefined && !isSearch) return []
      const message = isSearch
        ? 'A search cannot search another search.'
        : `Nothing is mounted at ${JSON.stringify(one)}.`
      return [{ path: ['mounts', address, option, index], message, fix: 'Name the address of another mount.' }]
    })
  })
}

export function clientFindings(config: unknown, addresses: readonly string[]): readonly Finding[] {
  const { data } = clientsSchema.safeParse(memberOf(config, 'clients'))
  const addressTexts = new Set(addresses.filter(isAddress).map((address) => parseAddress(address).text))
  return (data?.profiles ?? []).flatMap(({ list }, profile) =>
    (list?.mounts ?? []).flatMap((address, index) => {
      if (isAddress(address) && addressTexts.has(parseAddress(address).text)) return []
      const path = ['clients', 'profiles', profile, 'list', 'mounts', index]
      return [
        { path, message: 'Nothing is mounted at this address.', fix: 'Write the address of a mount, or remove it.' },
      ]
    }),
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

const requirements = {
  store: 'Name the database that they share: "store": { "postgres": { "env": "NAME" } }.',
  cursorSecret: 'Name the secret that they share: "cursorSecret": { "env": "NAME" }.',
} as const

export function replicasFindings(value: unknown): readonly Finding[] {
  const document = Object(value) as Readonly<Record<string, unknown>>
  if (document.replicas !== true) return []
  const webhooks = memberOf(document.events, 'webhooks')
  const alone = {
    message: 'Replicas cannot deliver webhooks: only a single process can.',
    fix: 'Remove "webhooks" or "replicas".',
  }
  return [
    ...(webhooks === undefined ? [] : [{ path: ['events', 'webhooks'], ...alone }]),
    ...Object.entries(requirements).flatMap(([key, fix]) =>
      document[key] === undefined
        ? [{ path: ['replicas'], message: `Replicas need "${key}", which is missing.`, fix }]
        : [],
    ),
  ]
}
