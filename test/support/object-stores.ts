import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Log } from '../../src/core/log.ts'
import type { Content, Context, Entry, Provider, ReadRequest } from '../../src/core/provider.ts'
import { gcs } from '../../src/providers/gcs/index.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { type GcsStandIn, sendGcsError, startGcs } from './gcs-stand-in.ts'
import type { ObjectTable } from './object-table.ts'
import { type Intercept, type S3StandIn, type SeenRequest, sendError, startS3 } from './s3-stand-in.ts'

/** The shared interface of the tests of object storage: a stand-in store, and a function that opens a provider. */
export interface Subject {
  readonly name: 's3' | 'gcs'
  readonly url: string
  readonly port: number
  readonly table: ObjectTable
  readonly requests: SeenRequest[]
  readonly forbidden: Set<string>
  intercept: Intercept | undefined
  /** The answer of the store to too many requests. */
  throttle: Intercept
  open(options?: Options): Promise<Opened>
  close(): Promise<void>
}

export interface Options {
  readonly prefix?: string
  readonly maxBytes?: number
  readonly linkMs?: number
  readonly timeoutMs?: number
  readonly endpoint?: string
}

/** A provider with its log messages. */
export interface Opened extends Provider {
  readonly logged: { readonly level: string; readonly message: string; readonly fields: unknown }[]
}

export const context: Context = { principal: { id: 'test', roles: [] }, signal: new AbortController().signal }

export async function startSubject(name: Subject['name']): Promise<Subject> {
  return name === 's3' ? subjectOf(name, await startS3()) : subjectOf(name, await startGcs())
}

function subjectOf(name: Subject['name'], store: S3StandIn | GcsStandIn): Subject {
  const opened: Provider[] = []
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-objects-'))
  const keyFile = join(folder, 'key.json')
  if ('keyFile' in store) writeFileSync(keyFile, store.keyFile)
  return {
    name,
    ...{ url: store.url, port: store.port, table: store.table, requests: store.requests, forbidden: store.forbidden },
    get intercept() {
      return store.intercept
    },
    set intercept(intercept) {
      store.intercept = intercept
    },
    throttle: ({ method }, response) => {
      if (name === 's3') sendError(response, 'SlowDown', '', method)
      else sendGcsError(response, 429, 'rateLimitExceeded')
      return true
    },
    open: async (options = {}) => {
      const logged: Opened['logged'] = []
      const log: Log = (level, message, fields) => void logged.push({ level, message, fields })
      const common = { bucket: store.bucket, endpoint: store.url, log, ...options }
      const provider =
        'keyFile' in store ? await gcs({ ...common, keyFile }) : await s3({ ...common, keys: store.keys })
      opened.push(provider)
      return { ...provider, logged }
    },
    close: async () => {
      await Promise.all(opened.map((provider) => provider.close?.()))
      await store.close()
      rmSync(folder, { recursive: true })
    },
  }
}

export async function readOne(provider: Provider, request: Partial<ReadRequest> & { path: string }): Promise<Content> {
  const [content] = await provider.read({ params: new Map(), ...request }, context)
  if (content === undefined) throw new Error('nothing was answered')
  return content
}

export async function readText(provider: Provider, path: string): Promise<string> {
  const content = await readOne(provider, { path })
  if (!('text' in content)) throw new Error('it is no text')
  return content.text
}

export async function listAll(provider: Provider, query: Parameters<Provider['list']>[0] = {}): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const entry of provider.list(query, context)) entries.push(entry)
  return entries
}
