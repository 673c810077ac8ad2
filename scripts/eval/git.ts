import { execFile, spawn } from 'node:child_process'
import { isText } from '../../src/core/kit/utf8.ts'

const safe = ['--no-pager', '--no-optional-locks', '-c', 'core.fsmonitor=false', '-c', 'protocol.allow=never']
const environment = { ...process.env, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0', GIT_NO_LAZY_FETCH: '1' }
const maxFileBytes = 400_000
const maxGitBytes = 512 * 2 ** 20

/** A commit, with its message and the files that it modified. */
export interface Change {
  readonly commit: string
  readonly subject: string
  readonly body: string
  /** Milliseconds since 1970. */
  readonly time: number
  readonly modified: ReadonlySet<string>
}

export interface Repository {
  readonly name: string
  /** The newest commits that modify between one and `maxFiles` existing files. */
  changes(maxFiles: number): Promise<readonly Change[]>
  /** The files of a commit: the ids of their blobs, by path. */
  tree(commit: string): Promise<ReadonlyMap<string, string>>
  /** The texts of blobs by their ids, without binary and large blobs. The texts are cached. */
  texts(ids: Iterable<string>): Promise<ReadonlyMap<string, string>>
  /** The lines that a commit changes, or after which it inserts lines, by path. Line numbers of the file before the commit, from 1. */
  hunks(commit: string): Promise<ReadonlyMap<string, readonly (readonly [start: number, end: number])[]>>
}

export function openRepository(name: string, folder: string): Repository {
  const known = new Map<string, string | undefined>()
  const git = (...args: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { cwd: folder, maxBuffer: maxGitBytes, env: environment }
      execFile('git', [...safe, ...args], options, (error, stdout) =>
        error === null ? resolve(stdout) : reject(error),
      )
    })

  const load = async (ids: readonly string[]): Promise<void> => {
    const child = spawn('git', [...safe, 'cat-file', '--batch'], { cwd: folder, env: environment })
    child.stdin.end(ids.map((id) => `${id}\n`).join(''))
    const chunks: Buffer[] = []
    for await (const chunk of child.stdout) chunks.push(chunk as Buffer)
    const all = Buffer.concat(chunks)
    for (let at = 0; at < all.length; ) {
      const end = all.indexOf(10, at)
      const [id = '', , size = ''] = all.toString('latin1', at, end).split(' ')
      const bytes = all.subarray(end + 1, end + 1 + Number(size))
      known.set(id, bytes.length <= maxFileBytes && isText(bytes) ? bytes.toString('utf8') : undefined)
      at = end + 2 + Number(size)
    }
  }

  return {
    name,
    changes: async (maxFiles) => {
      const fields = '--format=%x01%H%x02%ct%x02%s%x02%b%x03'
      const log = await git('log', '--no-merges', '--no-renames', '--diff-filter=M', '--name-only', '-z', fields)
      return log.split('\x01').flatMap((record): readonly Change[] => {
        const [head = '', names = ''] = record.split('\x03')
        const [commit = '', seconds = '', subject = '', body = ''] = head.split('\x02')
        const modified = new Set(
          names
            .split('\0')
            .map((path) => path.trim())
            .filter(isSource),
        )
        if (commit === '' || modified.size === 0 || modified.size > maxFiles) return []
        return [{ commit, subject, body, time: 1000 * Number(seconds), modified }]
      })
    },
    tree: async (commit) => {
      const tree = await git('ls-tree', '-r', '-z', '--full-tree', commit)
      return new Map(
        tree.split('\0').flatMap((line) => {
          const [, type, id, path] = /^\d+ (\w+) ([0-9a-f]+)\t(.*)$/s.exec(line) ?? []
          return type === 'blob' && id !== undefined && path !== undefined ? [[path, id] as const] : []
        }),
      )
    },
    texts: async (ids) => {
      const all = [...new Set(ids)]
      const missing = all.filter((id) => !known.has(id))
      if (missing.length > 0) await load(missing)
      return new Map(
        all.flatMap((id) => {
          const text = known.get(id)
          return text === undefined ? [] : [[id, text] as const]
        }),
      )
    },
    hunks: async (commit) => {
      const diff = await git(
        'diff',
        '--unified=0',
        '--no-color',
        '--no-renames',
        '--diff-filter=M',
        `${commit}^`,
        commit,
      )
      const hunks = new Map<string, (readonly [number, number])[]>()
      let path = ''
      for (const line of diff.split('\n')) {
        const file = /^--- a\/(.*)$/.exec(line)?.[1]
        if (file !== undefined) path = file
        const [, from, count = '1'] = /^@@ -(\d+)(?:,(\d+))? /.exec(line) ?? []
        if (from === undefined) continue
        const start = Math.max(1, Number(from))
        const range = [start, start + Math.max(1, Number(count)) - 1] as const
        hunks.set(path, [...(hunks.get(path) ?? []), range])
      }
      return hunks
    },
  }
}

/** Whether a path is not a lock file. Lock files change together with other files, and tell nothing about a commit. */
function isSource(path: string): boolean {
  return path !== '' && !/(?:^|\/)(?:package-lock\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?)$/.test(path)
}
