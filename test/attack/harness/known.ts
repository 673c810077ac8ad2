import { setTimeout as sleep } from 'node:timers/promises'
import type { Content, Entry, Provider } from '../../../src/core/provider.ts'
import { invalid, notFound } from '../../../src/index.ts'

/** Returns the secrets in the environment of a server under attack. */
export function knownSecrets(): readonly string[] {
  const { API_TOKEN = '', AWS_SECRET_ACCESS_KEY = '', DATABASE_URL = '' } = process.env
  return [API_TOKEN, AWS_SECRET_ACCESS_KEY, DATABASE_URL, guessed]
}

/** A secret that a client has guessed and sent, so that answers may repeat it. It is no canary. */
export const guessed = 'as-a-client-guessed-1'

async function* inPieces(bytes: Buffer, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

/**
 * A source that discloses secrets everywhere: in texts, bytes, streams that are split within them, names, titles, metadata,
 * completions, and errors; and that echoes requests.
 */
export function known([token = '', ...others]: readonly string[]): Provider {
  const binary = Buffer.concat([Buffer.from([0, 255, 254]), Buffer.from(token), Buffer.from([0, 1])])
  const wide = Buffer.from(`key ${token}`, 'utf16le')
  const long = Buffer.concat([Buffer.alloc(300_001, 0xa5), Buffer.from(token), Buffer.alloc(300_000, 0xa5)])
  const contents: Readonly<Record<string, () => readonly Content[]>> = {
    text: () => [{ text: [token, ...others].join(' and ') }],
    json: () => [{ text: JSON.stringify({ a: JSON.stringify({ token }) }) }],
    bytes: () => [{ bytes: binary }],
    wide: () => [{ bytes: Buffer.concat([wide, Buffer.from(wide).swap16()]) }],
    stream: () => [{ stream: inPieces(long, 7), length: long.length }],
    parts: () => [
      { path: 'text', text: 'a' },
      { path: `${token}.txt`, title: token, text: 'b' },
    ],
    meta: () => [
      { text: 'a', title: token, version: token, meta: { [token]: token, list: [{ deep: { [token]: [token] } }] } },
    ],
  }
  const failures: Readonly<Record<string, () => unknown>> = {
    throws: () => new Error(`connect failed: ${token}`, { cause: new Error(token, { cause: { token } }) }),
    aggregate: () => new AggregateError([new Error(token), token], token),
    invalid: () => invalid(`No such thing as ${token}.`, 'argument', { near: token }),
    string: () => token,
    object: () => ({ config: { headers: { authorization: `Bearer ${token}` } }, toString: () => token }),
  }
  const entries: readonly Entry[] = [
    { path: `a-${token}.txt`, title: token, description: `is ${token}` },
    ...Object.keys(contents).map((path) => ({ path, title: `${path} of ${token}` })),
  ]
  return {
    async *list({ prefix = '', after = '' }) {
      for (const entry of [...entries].sort((a, b) => (a.path < b.path ? -1 : 1)))
        if (entry.path.startsWith(prefix) && entry.path > after) yield entry
    },
    read: async ({ path, params }) => {
      if (path === 'slow') await sleep(1500)
      const failure = failures[path]
      if (failure !== undefined) throw failure()
      if (path === 'slow') return [{ text: token }]
      if (path === 'echo') return [{ text: `${params.get('text')}` }]
      return contents[path]?.() ?? Promise.reject(notFound())
    },
    templates: async () => [
      { template: 'echo{?text}', name: `echo ${token}`, title: token, description: `Says nothing of ${token}.` },
    ],
    complete: async () => ({ values: ['fine', token, `${token}/a`] }),
  }
}
