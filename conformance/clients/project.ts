import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { applyEdits, modify } from 'jsonc-parser'

/** Name of the project's folder. `init` derives the addresses of the mounts from it. */
export const projectName = 'shop'

/** The smallest PNG: one pixel. */
export const picture = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==',
  'base64',
)

/** A word that occurs in only one file of the project. */
export const rareWord = 'quokkaberry'

/** Paths of the files that the sessions read, find and change. */
export const paths = {
  text: 'README.md',
  japanese: 'docs/ja/手引き.md',
  blob: 'assets/logo.png',
  rare: 'docs/en/stock.md',
  watched: 'docs/en/guide.md',
  module: 'src/module0007.ts',
} as const

/** The text files except the modules, by path. They are committed, and visible to everybody. */
const documents: Readonly<Record<string, string>> = {
  '.gitignore': 'dist/\n*.log\n.env\nhikidashi.json\n',
  [paths.text]: '---\npriority: 0.8\n---\n# The shop\n\nIt sells tea. [日本語](README.ja.md)\n',
  'README.ja.md': '# お店\n\nお茶を売ります。\n',
  'package.json': '{ "name": "shop", "version": "1.2.3", "type": "module" }\n',
  'config/app.yaml': 'server:\n  port: 8080\n',
  'prompts/review.md': '---\ndescription: Reviews a module.\n---\nReview {{module}} for mistakes.\n',
  [paths.watched]: '# The guide\n\n## Brewing\n\nLet it rest for three minutes.\n',
  [paths.rare]: `# Stock\n\nOnly one shelf holds ${rareWord} tea.\n`,
  [paths.japanese]: '# 手引き\n\n## 淹れ方\n\n梅雨の時期は、茶葉を密閉した容器で保管してください。\n',
  'docs/ja/見積 書 (第2版).md': '# 見積書\n\n合計は一万円です。\n',
  'notes/50% off #1.txt': 'The name needs escapes in a URI.\n',
}

/** Returns the path and the text of a module. */
function moduleText(number: number): readonly [path: string, text: string] {
  const name = String(number).padStart(4, '0')
  return [`src/module${name}.ts`, `/** Module ${number}. */\nexport const value${number} = ${number}\n`]
}

/** Returns the text of a committed file. */
export function textOf(path: string): string {
  const number = /^src\/module(\d+)\.ts$/.exec(path)?.[1]
  const text = number === undefined ? documents[path] : moduleText(Number(number))[1]
  if (text === undefined) throw new Error(`There is no ${path} in the project.`)
  return text
}

/** A project on disk, and the paths that a client must see. */
export interface Project {
  readonly folder: string
  /** The paths of the last commit. Both the files mount and the git mount must serve them. */
  readonly committed: readonly string[]
}

/**
 * Makes a project in a new folder: a git repository of three commits with settings, ignored files, and documents in English and
 * Japanese. `modules` is the number of further source files.
 */
export async function createProject(parent: string, modules: number): Promise<Project> {
  const folder = join(parent, projectName)
  const texts = [...Object.entries(documents), ...Array.from({ length: modules }, (_, number) => moduleText(number))]
  for (const [path, text] of texts) await write(folder, path, text)
  await write(folder, paths.blob, picture)
  await write(folder, '.env', 'HOST=db.example.org\nAPI_TOKEN=not-to-be-shown\n')
  await write(folder, 'dist/out.js', 'ignored\n')
  await write(folder, 'debug.log', 'ignored\n')
  const git = gitIn(folder)
  git('init', '-q', '-b', 'main')
  for (const [path, message] of [
    ['README.md', 'The first page'],
    ['docs', 'Documents'],
    ['.', 'Everything else'],
  ] as const) {
    git('add', path)
    git('commit', '-q', '-m', message)
  }
  return { folder, committed: [...texts.map(([path]) => path), paths.blob] }
}

/** Writes the configuration with the built command, as a user would, and adds the settings that the sessions need. */
export async function initialise(
  { folder }: Project,
  { hikidashi, env, audit }: { readonly hikidashi: string; readonly env: NodeJS.ProcessEnv; readonly audit: string },
): Promise<string> {
  execFileSync(process.execPath, [hikidashi, 'init', folder], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const file = join(folder, 'hikidashi.json')
  let text = await readFile(file, 'utf8')
  const formattingOptions = { insertSpaces: true, tabSize: 2 }
  // Only this setting gives tools to libraries, because they are not among the hosts that are known to need tools.
  for (const [path, value] of [
    [['audit'], { file: audit }],
    [['clients', 'tools'], 'on'],
  ] as const)
    text = applyEdits(text, modify(text, [...path], value, { formattingOptions }))
  await writeFile(file, text)
  return file
}

async function write(folder: string, path: string, content: string | Uint8Array): Promise<void> {
  const file = join(folder, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
}

/** Returns a function that runs git in a folder, without the configuration of the machine, and with fixed dates. */
function gitIn(folder: string): (...args: readonly string[]) => void {
  const date = '2026-01-02T03:04:05Z'
  const env = {
    PATH: process.env.PATH ?? '',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_AUTHOR_NAME: 'A',
    GIT_AUTHOR_EMAIL: 'a@example.org',
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: 'A',
    GIT_COMMITTER_EMAIL: 'a@example.org',
    GIT_COMMITTER_DATE: date,
  }
  return (...args) => void execFileSync('git', ['-C', folder, ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] })
}
