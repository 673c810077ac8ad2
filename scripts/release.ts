/**
 * `npm run release -- --dry-run`: builds every artefact of a release into `release/`, checks each as its registry does, and prints what
 * is missing. Without `--dry-run`, and if nothing is missing, it then publishes the package to the registry of npm.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { type Entry, type Options, open, type ZipFile } from 'yauzl'
import { npxServer, textArtefacts } from './release/artefacts.ts'
import * as checks from './release/checks.ts'
import { addressesOf, type Facts, factsOf, publishedManifest, readManifest } from './release/facts.ts'

const root = resolve(import.meta.dirname, '..')
const target = join(root, 'release')
const isWindows = process.platform === 'win32'
const npm = (args: readonly string[], cwd = root) =>
  execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], shell: isWindows })
const git = (...args: readonly string[]) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout?.trim() ?? ''

interface Artefact extends checks.Checked {
  readonly name: string
  /** Its path in the folder of the release, or in the repository. */
  readonly file: string
}

/** Packs the package as for publication. Returns the path of the tarball. */
function packPackage(facts: Facts): string {
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-release-'))
  try {
    const packed = npm(['pack', '--silent', '--pack-destination', folder]).trim().split('\n').at(-1) ?? ''
    execFileSync('tar', ['-xzf', packed], { cwd: folder })
    writeFileSync(join(folder, 'package/package.json'), `${JSON.stringify(publishedManifest(facts), undefined, 2)}\n`)
    const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', target]
    return join(target, npm(args, join(folder, 'package')).trim().split('\n').at(-1) ?? '')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Installs the tarball in an empty folder. Returns the main file of the command. */
function installPackage(tarball: string, folder: string): string {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  npm(['install', '--offline', '--no-audit', '--no-fund', '--silent', tarball], folder)
  return join(folder, 'node_modules/hikidashi/dist/cli/main.js')
}

function checkPackage(tarball: string, main: string, { manifest, isOwned }: Facts): checks.Checked {
  const version = execFileSync(process.execPath, [main, '--version'], { encoding: 'utf8' }).trim()
  const { repository, mcpName } = readManifest(resolve(main, '../../..'))
  const publish = ['publish', '--dry-run', '--ignore-scripts', '--offline', tarball]
  const judged = spawnSync('npm', publish, { cwd: target, encoding: 'utf8', shell: isWindows })
  return {
    faults: [
      ...(version === manifest.version ? [] : [`the installed command says ${version}`]),
      ...(isOwned && (repository === undefined || mcpName === undefined) ? ['it lacks the repository'] : []),
      ...(judged.status === 0 ? [] : [judged.stderr.trim()]),
    ],
    by: 'npm publish --dry-run, and installed',
  }
}

/** Returns the manifest and the names of the files of a bundle. */
async function readBundle(file: string) {
  const zip = await promisify<string, Options, ZipFile>(open)(file, { lazyEntries: true })
  const read = promisify(zip.openReadStream.bind(zip))
  const files = new Set<string>()
  let manifest: unknown
  await new Promise<void>((done, fail) => {
    zip.on('error', fail)
    zip.on('end', done)
    zip.on('entry', async (entry: Entry) => {
      files.add(entry.fileName)
      if (entry.fileName === 'manifest.json') manifest = JSON.parse(await textOf((await read(entry)) as never))
      zip.readEntry()
    })
    zip.readEntry()
  })
  return { manifest, files }
}

async function makeArtefacts(facts: Facts): Promise<readonly Artefact[]> {
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target)
  const { name, version } = facts.manifest
  const tarball = packPackage(facts)
  const sha256 = createHash('sha256').update(readFileSync(tarball)).digest('hex')
  const bundle = join(target, `${name}-${version}.mcpb`)
  const folder = mkdtempSync(join(tmpdir(), 'hikidashi-installed-'))
  let npmChecked: checks.Checked
  try {
    const main = installPackage(tarball, folder)
    npmChecked = checkPackage(tarball, main, facts)
    const words = [main, 'bundle', 'mcpb', '--all-platforms', '--output', bundle, '--json']
    execFileSync(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'] })
  } finally {
    rmSync(folder, { recursive: true })
  }
  const texts = textArtefacts(root, facts, sha256)
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(target, path)), { recursive: true })
    writeFileSync(join(target, path), text)
  }
  const text = (path: string) => texts[path] ?? ''
  const { manifest, files } = await readBundle(bundle)
  const published = publishedManifest(facts)
  return [
    { name: 'npm', file: `release/${name}-${version}.tgz`, ...npmChecked },
    {
      name: 'MCP bundle',
      file: `release/${name}-${version}.mcpb`,
      ...checks.checkBundleManifest(root, manifest, files),
    },
    {
      name: 'MCP registry',
      file: 'release/server.json',
      ...checks.checkServerJson(root, text('server.json'), published),
    },
    {
      name: "Docker's catalog",
      file: 'release/docker-catalog/',
      ...checks.checkCatalog(text('docker-catalog/server.yaml'), text('docker-catalog/tools.json')),
    },
    {
      name: 'buttons',
      file: 'release/buttons.md',
      ...checks.checkButtons(text('buttons.md'), npxServer(facts)),
    },
    { name: 'GitHub Action', file: 'action.yml', ...checks.checkAction(root) },
    {
      name: 'Homebrew',
      file: 'release/homebrew/hikidashi.rb',
      ...checks.checkFormula(text('homebrew/hikidashi.rb'), join(target, 'homebrew/hikidashi.rb')),
    },
    {
      name: 'Claude Code plugin',
      file: 'release/claude-plugin/',
      ...checks.checkMarketplace(root, text('claude-plugin/marketplace.json'), facts.manifest),
    },
  ]
}

/** Whether the registry of npm has this version; undefined if it does not answer. */
function isInRegistry({ manifest: { name, version } }: Facts): boolean | undefined {
  const args = ['view', `${name}@${version}`, 'version', '--fetch-retries=0', '--fetch-timeout=10000']
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd: tmpdir(), encoding: 'utf8', shell: isWindows })
  if (status === 0) return stdout.trim() !== ''
  return /E404/.test(stderr) ? false : undefined
}

/** What a release still needs. A dry run only prints it. */
function missingFor(facts: Facts): readonly string[] {
  const { manifest, isOwned, commit } = facts
  const tag = `v${manifest.version}`
  const changes = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  const published = isInRegistry(facts)
  const needs: readonly (readonly [boolean, string])[] = [
    [
      isOwned,
      'The owner is not set: the artefacts say OWNER. Write "repository": "git+https://github.com/OWNER/REPOSITORY.git" into package.json.',
    ],
    [manifest.private !== true, 'package.json is "private": remove that, and npm lets the package be published.'],
    [changes.includes(`## ${manifest.version}`), `CHANGELOG.md has no section "## ${manifest.version}".`],
    [git('status', '--porcelain') === '', 'There are changes that are not committed.'],
    [git('rev-parse', '--verify', '--quiet', `${tag}^{commit}`) === commit, `This commit has no tag ${tag}.`],
    [published !== true, `${manifest.name}@${manifest.version} is in the registry of npm already: raise the version.`],
    [
      published !== undefined,
      'The registry of npm does not answer: whether the version is published already is unknown.',
    ],
  ]
  return needs.flatMap(([holds, what]) => (holds ? [] : [what]))
}

/** What a person does after the package is in the registry of npm. */
function nextSteps(facts: Facts): readonly string[] {
  const { manifest } = facts
  const files = `release/${manifest.name}-${manifest.version}`
  return [
    `gh release create v${manifest.version} ${files}.mcpb ${files}.tgz`,
    'mcp-publisher login github && mcp-publisher publish (in release/)',
    "release/docker-catalog/ as servers/hikidashi/ in a pull request to Docker's mcp-registry",
    'release/homebrew/hikidashi.rb into Formula/ of your tap',
    'release/buttons.md into the README, and release/claude-plugin/marketplace.json into .claude-plugin/',
    `claude plugin marketplace add ${addressesOf(facts).marketplace}`,
  ]
}

const list = (title: string, lines: readonly string[]) =>
  lines.length === 0 ? '' : `\n${title}\n${lines.map((line) => `- ${line}`).join('\n')}\n`

const words = process.argv.slice(2)
if (words.some((word) => word !== '--dry-run')) {
  process.stderr.write('How it is used: npm run release -- [--dry-run]\n')
  process.exit(2)
}
const isDry = words.includes('--dry-run')
const facts = factsOf(readManifest(root), git('rev-parse', 'HEAD'))
const artefacts = await makeArtefacts(facts)
const widths = [0, 1].map((at) => Math.max(...artefacts.map(({ name, file }) => [name, file][at]?.length ?? 0)))
for (const { name, file, faults, by } of artefacts) {
  const mark = faults.length === 0 ? 'ok    ' : 'FAULT '
  process.stdout.write(`${mark} ${name.padEnd(widths[0] ?? 0)}  ${file.padEnd(widths[1] ?? 0)}  ${by}\n`)
  for (const fault of faults) process.stdout.write(`       ${fault}\n`)
}
const missing = missingFor(facts)
process.stdout.write(list('Missing for a release:', missing))
const isFaulty = artefacts.some(({ faults }) => faults.length > 0)
if (isDry || isFaulty || missing.length > 0) process.exitCode = isFaulty || !isDry ? 1 : 0
else {
  npm(['publish', '--access', 'public', join(target, `${facts.manifest.name}-${facts.manifest.version}.tgz`)])
  process.stdout.write(list('Published. What is left to do:', nextSteps(facts)))
}
