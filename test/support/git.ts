import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Content, Context, Entry, ListQuery, Provider } from '../../src/core/provider.ts'
import { sharedVariable } from './run-folders.ts'

/** A folder with real repositories for a test. */
export interface GitFolder {
  readonly path: string
  /** Creates a repository in the folder. */
  repository(name: string, options?: RepositoryOptions): GitRepository
  dispose(): void
}

export interface RepositoryOptions {
  readonly bare?: boolean
  readonly format?: 'sha1' | 'sha256'
}

export interface GitRepository {
  readonly dir: string
  /** Its git directory: `.git`, or the folder itself. */
  readonly gitDir: string
  /** Runs git in it, and returns the output. */
  git(...args: readonly string[]): string
  /** Runs git with a standard input. */
  feed(input: string | Uint8Array, ...args: readonly string[]): string
  write(path: string, content: string | Uint8Array): void
  /** Commits everything, and returns the id. Each commit is a minute later than the one before. */
  commit(message: string, options?: { readonly author?: string }): string
  /**
   * Runs `fill`. In a new repository, the result is copied from the first one of the test run, which saves git processes.
   * @param kind Name of what `fill` does, and nothing else does.
   * @returns The JSON value that `fill` returned.
   */
  fillAs<T>(kind: string, fill: () => T): T
}

const start = Date.UTC(2026, 0, 2, 3, 4, 5) / 1000

/** An environment without the git configuration of the machine. */
export const plainEnvironment: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
}

/** Turns off the maintenance process that git starts after each commit. */
const noMaintenance = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'maintenance.auto', GIT_CONFIG_VALUE_0: 'false' }

export function createGitFolder(): GitFolder {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'hikidashi-test-git-')))
  return {
    path,
    repository: (name, options) => makeRepository(join(path, name), options),
    dispose: () => rmSync(path, { recursive: true, force: true }),
  }
}

function makeRepository(dir: string, { bare = false, format = 'sha1' }: RepositoryOptions = {}): GitRepository {
  mkdirSync(dir, { recursive: true })
  copyOf(emptyRepository(bare, format), dir)
  return openTestRepository(dir, bare ? dir : join(dir, '.git'), bare ? undefined : format)
}

const emptyRepositories = new Map<string, string>()

/** Returns an empty repository that `git init` created once for the test run. Copying it needs no git process. */
function emptyRepository(bare: boolean, format: string): string {
  const kind = `git-${format}${bare ? '-bare' : ''}`
  const known = emptyRepositories.get(kind)
  if (known !== undefined) return known
  const dir = makeOnce(kind, (made) => {
    const flags = ['-q', '-b', 'main', `--object-format=${format}`, ...(bare ? ['--bare'] : [])]
    execFileSync('git', ['init', ...flags], { cwd: made, env: plainEnvironment })
    // Unused sample hooks, which are most of its files.
    const hooks = join(made, bare ? 'hooks' : '.git/hooks')
    for (const name of readdirSync(hooks)) rmSync(join(hooks, name))
  })
  emptyRepositories.set(kind, dir)
  return dir
}

const copied = new Map<string, readonly { readonly path: string; readonly mode: number; readonly bytes?: Buffer }[]>()

/** Copies a folder of small files, which is read once. `cpSync` takes four times as long. */
function copyOf(from: string, to: string): void {
  const known =
    copied.get(from) ??
    readdirSync(from, { recursive: true, encoding: 'utf8' })
      .sort()
      .map((path) => {
        const stats = statSync(join(from, path))
        const bytes = stats.isFile() ? { bytes: readFileSync(join(from, path)) } : {}
        return { path, mode: stats.mode & 0o777, ...bytes }
      })
  copied.set(from, known)
  for (const { path, mode, bytes } of known)
    if (bytes === undefined) mkdirSync(join(to, path), { recursive: true, mode })
    else writeFileSync(join(to, path), bytes, { mode })
}

/** Returns the path of a folder that is created once for all files of a test run. */
function makeOnce(kind: string, make: (folder: string) => void): string {
  const shared = process.env[sharedVariable]
  if (shared === undefined) throw new Error(`${sharedVariable} is not set: run this with vitest, which sets it.`)
  const dir = join(shared, kind)
  if (existsSync(dir)) return dir
  mkdirSync(shared, { recursive: true })
  const made = mkdtempSync(join(shared, 'making-'))
  make(made)
  try {
    renameSync(made, dir)
  } catch (error) {
    // Another test file was faster.
    if (!existsSync(dir)) throw error
    rmSync(made, { recursive: true, force: true })
  }
  return dir
}

/** Returns the commit of HEAD if it is in a file; packed refs and other formats are left to git. */
function headIn(gitDir: string): string | undefined {
  const [, ref] = /^ref: (refs\/heads\/\S+)\n$/.exec(textOf(join(gitDir, 'HEAD'))) ?? []
  return ref === undefined ? undefined : /^[0-9a-f]{40,64}(?=\n$)/.exec(textOf(join(gitDir, ref)))?.[0]
}

function textOf(path: string): string {
  return existsSync(path) && statSync(path).isFile() ? readFileSync(path, 'utf8') : ''
}

/**
 * Opens an existing repository: a clone, or a linked working tree.
 * @param format The object format, if it was created from the template.
 */
export function openTestRepository(dir: string, gitDir = join(dir, '.git'), format?: string): GitRepository {
  let time = start
  const run = (args: readonly string[], input?: string | Uint8Array, author = 'Ada Lovelace <ada@example.com>') => {
    const [, name = '', email = ''] = /^(.*) <(.*)>$/.exec(author) ?? []
    const date = `${time} +0900`
    return execFileSync('git', [...args], {
      cwd: dir,
      env: {
        ...plainEnvironment,
        ...noMaintenance,
        GIT_AUTHOR_NAME: name,
        GIT_AUTHOR_EMAIL: email,
        GIT_COMMITTER_NAME: name,
        GIT_COMMITTER_EMAIL: email,
        GIT_AUTHOR_DATE: date,
        GIT_COMMITTER_DATE: date,
      },
      input: input ?? '',
      stdio: ['pipe', 'pipe', 'pipe'],
      maxBuffer: 1e9,
    })
      .toString('utf8')
      .trimEnd()
  }
  const git = (...args: readonly string[]) => run(args)
  return {
    dir,
    gitDir,
    git,
    feed: (input, ...args) => run(args, input),
    write: (path, content) => {
      mkdirSync(dirname(join(dir, path)), { recursive: true })
      writeFileSync(join(dir, path), content)
    },
    commit: (message, { author } = {}) => {
      time += 60
      run(['add', '-A'])
      run(['commit', '-q', '--allow-empty', '--cleanup=verbatim', '-F', '-'], message, author)
      return headIn(gitDir) ?? git('rev-parse', 'HEAD')
    },
    fillAs: (kind, fill) => {
      if (format === undefined || headIn(gitDir) !== undefined) return fill()
      let filled: { readonly result: ReturnType<typeof fill> } | undefined
      const known = makeOnce(`git-${format}-filled-${kind}`, (folder) => {
        filled = { result: fill() }
        cpSync(dir, join(folder, 'repository'), { recursive: true })
        writeFileSync(join(folder, 'filled.json'), JSON.stringify({ ...filled, time }))
      })
      if (filled !== undefined) return filled.result
      copyOf(join(known, 'repository'), dir)
      const there = JSON.parse(readFileSync(join(known, 'filled.json'), 'utf8')) as {
        result: ReturnType<typeof fill>
        time: number
      }
      time = there.time
      return there.result
    },
  }
}

/** Short functions that call a provider. */
export interface Asked {
  list(query?: ListQuery): Promise<readonly Entry[]>
  paths(query?: ListQuery): Promise<readonly string[]>
  read(
    path: string,
    params?: Readonly<Record<string, string>>,
    range?: { start: number; end?: number },
  ): Promise<Content>
  text(path: string, params?: Readonly<Record<string, string>>): Promise<string>
  stat(path: string): Promise<Entry>
}

export function context(): Context {
  return { principal: { id: 'test', roles: [] }, signal: new AbortController().signal }
}

export function ask(provider: Provider): Asked {
  const list: Asked['list'] = async (query = {}) => {
    const entries: Entry[] = []
    for await (const entry of provider.list(query, context())) entries.push(entry)
    return entries
  }
  const read: Asked['read'] = async (path, params = {}, range) => {
    const request = { path, params: new Map(Object.entries(params)), ...(range === undefined ? {} : { range }) }
    const [content] = await provider.read(request, context())
    if (content === undefined) throw new Error('no content')
    return content
  }
  return {
    list,
    paths: async (query) => (await list(query)).map(({ path }) => path),
    read,
    text: async (path, params) => {
      const content = await read(path, params)
      if (!('text' in content)) throw new Error(`${path} is not text`)
      return content.text
    },
    stat: async (path) => {
      if (provider.stat === undefined) throw new Error('no stat')
      return provider.stat(path, context())
    },
  }
}

/** Whether the installed git supports reftable. */
export function hasReftable(): boolean {
  const folder = createGitFolder()
  try {
    makeReftable(folder.path)
    return true
  } catch {
    return false
  } finally {
    folder.dispose()
  }
}

/** Creates a repository with reftable. */
export function makeReftable(dir: string, format = 'sha1'): GitRepository {
  const flags = ['-q', '-b', 'main', '--ref-format=reftable', `--object-format=${format}`]
  execFileSync('git', ['init', ...flags, dir], { env: plainEnvironment, stdio: 'pipe' })
  return openTestRepository(dir)
}
