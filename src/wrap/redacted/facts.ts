import { createHmac } from 'node:crypto'
import { defined } from '../../core/kit/object.ts'
import type { Failure } from '../../core/kit/workers.ts'
import type { Completion, Content, ContentFacts, Entry } from '../../core/provider.ts'
import { redactedMark } from '../../core/scrub.ts'
import { redactPhrase } from '../../secrets/find.ts'
import { findShapes } from '../../secrets/shapes.ts'

/** The key in `_meta` that tells that something was removed from a content. */
export const redactedKey = 'dev.hikidashi/redacted'

/** Increased whenever the same source can give another result, so that versions change. */
const policy = 1

/** Turns a version of the source into one that reveals nothing of it. */
export type Seal = (path: string, version: string) => string

/** A keyed hash: without the key, nobody can compare it with the hash of a guess, or conclude that two secrets are equal. */
export function createSeal(key: Uint8Array, mode: string): Seal {
  return (path, version) =>
    createHmac('sha256', key)
      .update(JSON.stringify([policy, mode, path, version]))
      .digest('base64url')
      .slice(0, 22)
}

/** Whether a path contains a secret. The entry is then left out, because naming it would reveal the secret. */
export function isSecretPath(path: string): boolean {
  return /[\w-]{16}/.test(path) && findShapes(path).length > 0
}

/** An entry without secrets, and without the size, which would reveal their length. */
export function cleanEntry({ size: _, version, name, title, description, meta, ...rest }: Entry, seal: Seal): Entry {
  return {
    ...rest,
    ...(name === undefined ? {} : { name: redactPhrase(name) }),
    ...cleanMeta(meta),
    ...(title === undefined ? {} : { title: redactPhrase(title) }),
    ...(description === undefined ? {} : { description: redactPhrase(description) }),
    ...(version === undefined ? {} : { version: seal(rest.path, version) }),
  }
}

/** Returns the facts of a content without secrets, sizes and ranges: redaction changes sizes and ranges. */
export function cleanFacts(content: ContentFacts, requested: string, seal: Seal): ContentFacts {
  const { path, title, mimeType, version, immutable, meta } = content
  return {
    ...defined({ path }),
    ...(title === undefined ? {} : { title: redactPhrase(title) }),
    ...defined({ mimeType }),
    ...(version === undefined ? {} : { version: seal(path ?? requested, version) }),
    ...defined({ immutable }),
    ...cleanMeta(meta),
  }
}

export function cleanMeta(meta: Meta | undefined): { readonly meta?: Meta } {
  return meta === undefined ? {} : { meta: cleanValue(meta, 0) as Meta }
}

type Meta = Readonly<Record<string, unknown>>

/** A JSON value with the secrets removed from its texts. Values nested deeper than any metadata are left out. */
export function cleanValue(value: unknown, depth: number, maxDepth = 8): unknown {
  if (typeof value === 'string') return redactPhrase(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > maxDepth) return redactedMark
  if (Array.isArray(value)) return value.map((member) => cleanValue(member, depth + 1, maxDepth))
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [redactPhrase(key), cleanValue(member, depth + 1, maxDepth)]),
  )
}

/** A completion without values that contain a secret. */
export function cleanCompletion({ values, total, hasMore }: Completion): Completion {
  const kept = values.filter((value) => redactPhrase(value) === value)
  if (kept.length === values.length) return { values, ...defined({ total, hasMore }) }
  return { values: kept, ...defined({ hasMore }) }
}

/** Why a content is not shown at all. */
export type Reason = Failure | 'secret' | 'encoding' | 'vault'

const reasons: Readonly<Record<Reason, string>> = {
  secret: 'it holds a secret that cannot be taken out of it.',
  vault: 'files of this name hold secrets.',
  encoding: 'it is text in an encoding that cannot be looked through for secrets.',
  late: 'it could not be looked through for secrets in the time there is. Ask for a part of it.',
  crashed: 'it could not be looked through for secrets.',
}

/** Returns the replacement for a withheld content. */
export function withheld(reason: Reason, { path, title }: ContentFacts): Content {
  return {
    ...defined({ path, title }),
    mimeType: 'text/plain',
    meta: { [redactedKey]: 'withheld' },
    text: `${redactedMark} This content is withheld: ${reasons[reason]}\n`,
  }
}
