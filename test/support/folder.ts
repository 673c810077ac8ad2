import * as fs from 'node:fs'
import * as os from 'node:os'
import * as path from 'node:path'
import type { Context, Entry, ListQuery, Provider, ReadRequest } from '../../src/core/provider.ts'

/** A real folder for one test: `root` is served, `outside` is not. */
export interface Folder {
  readonly root: string
  readonly outside: string
  /** Writes files below the root: a string or bytes; `null` creates a directory (its path ends in `/`). */
  write(tree: Readonly<Record<string, string | Uint8Array | null>>): void
  at(name: string): string
  remove(): void
}

/** Creates a folder in the temporary directory of the system. */
export function createFolder(): Folder {
  const base = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'hikidashi-')))
  const root = path.join(base, 'root')
  const outside = path.join(base, 'outside')
  fs.mkdirSync(root)
  fs.mkdirSync(outside)
  const at = (name: string) => path.join(root, name)
  return {
    root,
    outside,
    at,
    write: (tree) => {
      for (const [name, content] of Object.entries(tree)) {
        fs.mkdirSync(content === null ? at(name) : path.dirname(at(name)), { recursive: true })
        if (content !== null) fs.writeFileSync(at(name), content)
      }
    },
    remove: () => fs.rmSync(base, { recursive: true, force: true }),
  }
}

export function contextOf(signal: AbortSignal = new AbortController().signal): Context {
  return { principal: { id: 'test', roles: [] }, signal }
}

export async function listAll(provider: Provider, query: ListQuery = {}, context = contextOf()): Promise<Entry[]> {
  const entries: Entry[] = []
  for await (const entry of provider.list(query, context)) entries.push(entry)
  return entries
}

export async function pathsOf(entries: AsyncIterable<Entry>): Promise<string[]> {
  const paths: string[] = []
  for await (const { path } of entries) paths.push(path)
  return paths
}

export async function listPaths(provider: Provider, query: ListQuery = {}): Promise<string[]> {
  return (await listAll(provider, query)).map(({ path }) => path)
}

/** Returns the first entries of a listing, and stops it. */
export async function listSome(provider: Provider, query: ListQuery, count: number): Promise<string[]> {
  const paths: string[] = []
  if (count === 0) return paths
  for await (const entry of provider.list(query, contextOf())) if (paths.push(entry.path) === count) break
  return paths
}

/** Returns the only content at a path. */
export async function readOne(
  provider: Provider,
  path: string,
  request: Omit<Partial<ReadRequest>, 'params'> & { readonly params?: Readonly<Record<string, string>> } = {},
) {
  const { params = {}, ...rest } = request
  const contents = await provider.read({ path, ...rest, params: new Map(Object.entries(params)) }, contextOf())
  if (contents.length !== 1) throw new Error(`${contents.length} contents`)
  return contents[0]!
}

/** Returns the text of the only content at a path. */
export async function textOf(
  provider: Provider,
  path: string,
  params: Readonly<Record<string, string>> = {},
): Promise<string> {
  const content = await readOne(provider, path, { params })
  if (!('text' in content)) throw new Error('no text')
  return content.text
}

export async function jsonOf(provider: Provider, path: string, params: Readonly<Record<string, string>> = {}) {
  return JSON.parse(await textOf(provider, path, params))
}

/** Returns the text at a path, or the kind of the error: `!not-found`. */
export async function textAt(provider: Provider, path: string): Promise<string> {
  try {
    const content = await readOne(provider, path)
    return 'text' in content ? content.text : '(bytes)'
  } catch (error) {
    if (error instanceof Error && 'kind' in error) return `!${error.kind}`
    throw error
  }
}

/** Returns the open descriptors of this process below a directory, or of deleted files. */
export function openBelow(directory: string): readonly string[] {
  return fs
    .readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return fs.readlinkSync(`/proc/self/fd/${fd}`)
      } catch {
        return ''
      }
    })
    .filter((link) => link.startsWith(directory))
}

export const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Returns the answer of a call as JSON, or the kind of its error. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await call)
  } catch (error) {
    return error instanceof Error && 'kind' in error ? String(error.kind) : String(error)
  }
}
