import { execFileSync } from 'node:child_process'
import { describe, test } from 'vitest'
import { git } from '../../src/providers/git/index.ts'
import { describeProvider, type Subject } from '../../src/testing/index.ts'
import { sliced } from '../../src/wrap/sliced.ts'
import { createGitFolder, type GitFolder, type GitRepository, plainEnvironment } from '../support/git.ts'

const bytes = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256)

const held: Readonly<Record<string, string | Uint8Array>> = {
  // Around a directory: `a-b` < `a.txt` < `a/…` < `a0`, in git's order too.
  'a-b': 'dash',
  'a.txt': 'dot',
  'a/b/c/deep.md': '# deep\n',
  'a/b/c.md': '# less deep\n',
  a0: 'zero',
  'kana/\u{ff71}.txt': 'half-width',
  'kana/\u{20bb7}野家.txt': 'beyond the basic plane',
  '日本語/資料 (最終版).txt': '梅雨',
  'twins/\u{304c}.txt': 'composed',
  'twins/\u{304b}\u{3099}.txt': 'decomposed',
  'odd/👨‍👩‍👧.txt': 'family',
  'odd/ leading and trailing ': 'spaces',
  'odd/%41.txt': 'escape',
  'odd/back\\slash': 'backslash',
  'odd/[id].tsx': 'brackets',
  'odd/:(glob)*': 'magic',
  'odd/-rf': 'an option',
  'odd/\u{10ffff}.txt': 'the last character',
  // Names of what is no file.
  log: 'a file called log',
  'branches/x': 'a directory called branches',
  'empty.txt': '',
  'binary.dat': bytes,
  'long/lines.txt': Array.from({ length: 5000 }, (_, i) => `${i}: 吾輩は猫である。\n`).join(''),
  ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`many/${i}.txt`, `number ${i}`])),
}

function fill(repository: GitRepository): void {
  for (const [path, content] of Object.entries(held)) repository.write(path, content)
  repository.commit('everything')
  repository.write('a.txt', 'dot, changed')
  repository.commit('a change')
  repository.write('a.txt', 'dot')
  repository.commit('and back')
  repository.git('branch', 'feature/x', 'HEAD~1')
  repository.git('tag', '-a', 'v1', '-m', 'the first', 'HEAD~1')
}

const files = Object.fromEntries(
  Object.entries(held).map(([path, content]) => [
    `HEAD/${path}`,
    typeof content === 'string' ? { text: content } : { bytes: content },
  ]),
)
const pages = { branches: {}, log: {}, tags: {} }
const missing = [
  'HEAD',
  'HEAD/a',
  'HEAD/none',
  'main',
  'nothing/a.txt',
  'refs/heads/main',
  'commits/HEAD/x',
  'diff/main',
]

async function subject(
  folder: GitFolder,
  dir: string,
  entries: Subject['expectation']['entries'] = {},
): Promise<Subject> {
  return {
    provider: await git({ repository: dir }),
    expectation: { entries: { ...entries, ...pages }, missing },
    dispose: () => folder.dispose(),
  }
}

describeProvider(
  { describe, test },
  'the provider git over a working tree',
  async () => {
    const folder = createGitFolder()
    const repository = folder.repository('work')
    fill(repository)
    return subject(folder, repository.dir, { ...files, status: {} })
  },
  { through: { sliced } },
)

describeProvider(
  { describe, test },
  'the provider git over a bare repository with packs and ids of SHA-256',
  async () => {
    const folder = createGitFolder()
    const repository = folder.repository('work', { format: 'sha256' })
    fill(repository)
    repository.git('gc', '-q')
    execFileSync('git', ['clone', '-q', '--bare', '--no-local', repository.dir, `${folder.path}/bare.git`], {
      env: plainEnvironment,
      stdio: 'ignore',
    })
    return subject(folder, `${folder.path}/bare.git`, files)
  },
)

describeProvider({ describe, test }, 'the provider git over a repository without commits', async () => {
  const folder = createGitFolder()
  const repository = folder.repository('work')
  return subject(folder, repository.dir, { status: {} })
})
