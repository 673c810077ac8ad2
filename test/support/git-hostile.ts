import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import type { GitFolder, GitRepository } from './git.ts'
import { plainEnvironment } from './git.ts'

/** Programs that leave a mark file when they are run. */
export interface Traps {
  /**
   * Returns the path of a program that leaves the mark `name`, and copies its input to its output; with `ends` it exits at once.
   */
  set(name: string, ends?: boolean): string
  /** Returns the marks that were left. */
  sprung(): readonly string[]
  /** Removes the marks. */
  clear(): void
}

export function createTraps(folder: GitFolder): Traps {
  const programs = join(folder.path, 'programs')
  const marks = join(folder.path, 'marks')
  for (const dir of [programs, marks]) mkdirSync(dir, { recursive: true })
  return {
    set: (name, ends = false) => {
      const program = join(programs, name)
      const rest = ends ? 'exit 1' : 'if [ -f "$1" ]; then cat "$1"; else cat; fi'
      writeFileSync(program, `#!/bin/sh\n: > '${join(marks, name)}'\n${rest}\n`)
      chmodSync(program, 0o755)
      return program
    },
    sprung: () => readdirSync(marks).sort(),
    clear: () => {
      for (const name of readdirSync(marks)) rmSync(join(marks, name))
    },
  }
}

/** Runs git without protection, as a careless server would; it may fail. */
export function carelessly(repository: GitRepository, ...args: readonly string[]): string {
  const { stdout } = spawnSync('git', [...args], {
    cwd: repository.dir,
    env: { ...plainEnvironment, GIT_TERMINAL_PROMPT: '0' },
    input: '',
    timeout: 20_000,
  })
  return stdout.toString('utf8')
}

/** Adds two commits of a text file, and a change in the working tree. */
export function fillPlainly(repository: GitRepository): { readonly first: string; readonly second: string } {
  return repository.fillAs('plainly', () => {
    repository.write('a.txt', 'one\n')
    repository.write('dir/b.txt', 'b\n')
    const first = repository.commit('first')
    repository.write('a.txt', 'one\ntwo\n')
    const second = repository.commit('second')
    repository.write('a.txt', 'one\ntwo\nthree\n')
    return { first, second }
  })
}

/** Adds every setting that makes git run a program, and a change in the working tree. */
export function arm(repository: GitRepository, traps: Traps): void {
  const program = (name: string) => traps.set(name)
  repository.write('.gitattributes', '* diff=evil filter=evil merge=evil\n')
  repository.commit('attributes')
  repository.write('a.txt', 'one\ntwo\nthree\nfour\n')
  mkdirSync(join(repository.gitDir, 'info'), { recursive: true })
  writeFileSync(join(repository.gitDir, 'info/attributes'), '* diff=evil filter=evil\n')
  const settings: Readonly<Record<string, string>> = {
    'core.fsmonitor': program('fsmonitor'),
    'diff.evil.textconv': program('textconv'),
    'diff.evil.command': program('diff-driver'),
    'diff.external': program('diff-external'),
    'filter.evil.smudge': program('smudge'),
    'filter.evil.clean': program('clean'),
    'filter.evil.required': 'true',
    'merge.evil.driver': program('merge'),
    'core.pager': program('pager'),
    'pager.log': program('pager-log'),
    'core.editor': program('editor'),
    'sequence.editor': program('sequence-editor'),
    'gpg.program': program('gpg'),
    'log.showSignature': 'true',
    'core.sshCommand': traps.set('ssh', true),
    'core.askPass': program('askpass'),
    'core.alternateRefsCommand': program('alternate-refs'),
    'credential.helper': `!${program('credential')}`,
    'protocol.ext.allow': 'always',
    'core.gitProxy': program('proxy'),
    'remote.origin.url': `ext::${traps.set('ext', true)}`,
    'remote.origin.promisor': 'true',
    'extensions.partialClone': 'origin',
    'alias.log': `!${program('alias')}`,
    'trailer.evil.command': program('trailer'),
    'trailer.evil.key': 'Evil',
  }
  const hooks = join(repository.gitDir, 'own-hooks')
  mkdirSync(hooks)
  addSettings(repository, { ...settings, 'core.hooksPath': hooks })
  for (const hook of [
    'post-index-change',
    'reference-transaction',
    'post-checkout',
    'pre-commit',
    'fsmonitor-watchman',
  ]) {
    writeFileSync(join(hooks, hook), `#!/bin/sh\nexec '${program(`hook-${hook}`)}'\n`)
    chmodSync(join(hooks, hook), 0o755)
  }
}

/** Adds settings to a repository like `git config`, without processes. */
function addSettings(repository: GitRepository, settings: Readonly<Record<string, string>>): void {
  const lines = Object.entries(settings).map(([key, value]) => {
    const [, section = '', sub, name = ''] = /^([^.]+)\.(?:(.+)\.)?([^.]+)$/.exec(key) ?? []
    return `[${section}${sub === undefined ? '' : ` ${JSON.stringify(sub)}`}]\n\t${name} = ${JSON.stringify(value)}\n`
  })
  appendFileSync(join(repository.gitDir, 'config'), lines.join(''))
}

/** Writes a git object without validation (SHA-1 ids). */
export function writeRaw(
  repository: GitRepository,
  type: 'tree' | 'commit' | 'blob',
  content: string | Uint8Array,
): string {
  const bytes = Buffer.from(content)
  const object = Buffer.concat([Buffer.from(`${type} ${bytes.length}\0`), bytes])
  const oid = createHash('sha1').update(object).digest('hex')
  const dir = join(repository.gitDir, 'objects', oid.slice(0, 2))
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, oid.slice(2)), deflateSync(object))
  return oid
}

/** Returns a tree object with names of any kind. */
export function rawTree(entries: readonly (readonly [mode: string, name: string | Uint8Array, oid: string])[]): Buffer {
  return Buffer.concat(
    entries.flatMap(([mode, name, oid]) => [
      Buffer.from(`${mode} `),
      Buffer.from(name),
      Buffer.from([0]),
      Buffer.from(oid, 'hex'),
    ]),
  )
}

/** Commits a tree object to a branch. */
export function commitTree(repository: GitRepository, tree: string, branch: string): string {
  const commit = repository.git('commit-tree', '-m', 'made by hand', tree)
  repository.git('update-ref', `refs/heads/${branch}`, commit)
  return commit
}

/** Creates a program called `git` in a folder; it runs `script`, in which `$REAL` is the real git. */
export function fakeGit(folder: GitFolder, name: string, script: string): string {
  const real = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim()
  const dir = join(folder.path, name)
  mkdirSync(dir, { recursive: true })
  const program = join(dir, 'git')
  writeFileSync(program, `#!/bin/sh\nREAL='${real}'\n${script}\n`)
  chmodSync(program, 0o755)
  return program
}

/** Returns the processes whose environment contains a text. */
export function processesWith(text: string): readonly number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`).includes(text)
    } catch {
      // The process has ended, or belongs to another user.
      return false
    }
  })
}
