import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { findTool } from '../../conformance/tools.ts'
import { type Bucket, startBucket } from '../support/buckets.ts'
import { main } from '../support/cli.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { createGitFolder, type GitFolder } from '../support/git.ts'
import { requires } from '../support/require.ts'
import type { S3StandIn } from '../support/s3-stand-in.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

/** The functions of `@olaservo/ext-skills` that hosts call, which is installed with the conformance tools. */
interface SkillsLibrary {
  discoverSkills(client: Client): Promise<readonly SkillEntry[]>
  getSkill(client: Client, uri: string): Promise<SkillEntry>
  readSkill(client: Client, entry: SkillEntry): Promise<string>
  readSkillResource(client: Client, entry: SkillEntry, uri: string): Promise<{ text?: string; blob?: string }>
  manifestOf(entry: SkillEntry): readonly { readonly uri: string; readonly size: number }[] | undefined
  checkSkillLimits(entry: SkillEntry): { readonly withinLimits: boolean }
  walkDirectory(client: Client, uri: string): Promise<readonly { readonly uri: string }[]>
}

interface SkillEntry {
  readonly uri: string
  readonly frontmatter: Readonly<Record<string, unknown>>
}

const library = fileURLToPath(
  new URL('../../conformance/node_modules/@olaservo/ext-skills/dist/client/index.js', import.meta.url),
)
const inspector = findTool('mcp-inspector')
const missing = 'run npm ci --prefix conformance'

/** One skill, with a file in a folder of a folder, a name that is encoded in a URI, and bytes that are no text. */
const skill = (name: string): Readonly<Record<string, string | Buffer>> => ({
  [`${name}/SKILL.md`]: `---\nname: ${name}\ndescription: Does ${name}.\nmetadata:\n  version: "1.10"\n---\n# ${name}\n`,
  [`${name}/references/eu/ü a.md`]: 'Über alles.\r\n',
  [`${name}/logo.png`]: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 255]),
})
const within = (directory: string, files: ReturnType<typeof skill>) =>
  Object.fromEntries(Object.entries(files).map(([path, content]) => [`${directory}/${path}`, content]))

let folder: Folder
let repositories: GitFolder
let bucket: Bucket<S3StandIn>
let home: string
let config: string

/** One server with skills of a folder, of a tag of a repository, and of a prefix of a bucket. */
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'hikidashi-skills-'))
  folder = createFolder()
  folder.write(skill('in-folder'))

  repositories = createGitFolder()
  const repository = repositories.repository('app')
  const write = (files: ReturnType<typeof skill>) => {
    for (const [path, content] of Object.entries(files)) repository.write(path, content)
  }
  write(within('.claude/skills', skill('in-tag')))
  repository.commit('skills')
  repository.git('tag', 'v2')
  // The branch has gone on since: neither this text nor this skill is in the tag.
  repository.write('.claude/skills/in-tag/references/eu/ü a.md', 'Another text.\n')
  write(within('.claude/skills', skill('later')))
  repository.commit('more skills')

  bucket = await startBucket('s3')
  for (const [path, content] of Object.entries(within('agents/skills', skill('in-bucket'))))
    bucket.store.table.put(path, content)
  bucket.store.table.put('elsewhere/skills/hidden/SKILL.md', '---\nname: hidden\ndescription: Elsewhere.\n---\n')

  config = join(home, 'hikidashi.json')
  const mounts = {
    'skill://team': { provider: 'files', root: folder.root, skills: true },
    'git://app': { provider: 'git', repository: repository.dir, skills: 'v2/.claude/skills' },
    's3://shared': { ...bucket.mount, skills: ['agents/skills'] },
  }
  writeFileSync(config, JSON.stringify({ mounts }))
})
afterAll(async () => {
  await bucket.close()
  repositories.dispose()
  folder.remove()
  rmSync(home, { recursive: true, force: true })
})

const serve = () => [main, 'serve', '--config', config, '--stdio', '--log-level', 'error']
const roots = {
  'in-folder': 'skill://team/in-folder',
  'in-tag': 'git://app/v2/.claude/skills/in-tag',
  'in-bucket': 's3://shared/agents/skills/in-bucket',
} as const
const uris = ['skill://hikidashi/find-and-read', ...Object.values(roots)].map((root) => `${root}/SKILL.md`).sort()
const filesOf = (root: string) =>
  ['SKILL.md', 'logo.png', 'references/eu/%C3%BC%20a.md'].map((path) => `${root}/${path}`)

requires(
  'inspector',
  'command' in inspector,
  'missing' in inspector ? inspector.missing : '',
)('with the Inspector,', () => {
  async function verify(era: string, ...method: readonly string[]) {
    if (!('command' in inspector)) throw new Error(missing)
    const [node, script] = inspector.command
    const asked = ['--cli', '-q', '--format', 'json', '--transport', 'stdio', '--protocol-era', era]
    const args = [...asked, ...method, '--verify', '--require-digests', '--', process.execPath, ...serve()]
    const env = { ...process.env, HOME: home, MCP_INSPECTOR_SECRET_STORE: 'memory' }
    const { stdout } = await promisify(execFile)(node, [script, ...args], { env, timeout: 60_000 })
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly uri: string; readonly files: readonly { readonly uri: string }[] })
  }

  test.each(['legacy', 'modern'])(
    'skills of a folder, a tag and a bucket are listed in the protocol era %s',
    async (era) => {
      const reports = await verify(era, '--method', 'skills/list')
      expect(reports.map(({ uri }) => uri).sort()).toEqual(uris)
      for (const report of reports)
        expect(report).toMatchObject({ ok: true, outcome: 'verified', conformance: [], frontmatter: [] })
      for (const root of Object.values(roots)) {
        const report = reports.find(({ uri }) => uri === `${root}/SKILL.md`)
        expect(report?.files.map(({ uri }) => uri).sort()).toEqual(filesOf(root))
      }
    },
  )

  test('a skill is found by its URI, and its digests are correct', async () => {
    const uri = `${roots['in-tag']}/SKILL.md`
    expect(await verify('modern', '--method', 'skills/get', '--uri', uri)).toMatchObject([{ uri, outcome: 'verified' }])
  })
})

requires(
  'ext-skills',
  existsSync(library),
  missing,
)('with @olaservo/ext-skills,', () => {
  let skills: SkillsLibrary
  const clients: Client[] = []
  beforeAll(async () => {
    skills = (await import(/* @vite-ignore */ pathToFileURL(library).href)) as SkillsLibrary
  })
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()))
  })

  async function connect(mode: 'auto' | 'legacy'): Promise<Client> {
    const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode } })
    clients.push(client)
    await client.connect(new StdioClientTransport({ command: process.execPath, args: serve(), stderr: 'ignore' }))
    return client
  }

  describe.each(['legacy', 'auto'] as const)('skills in the protocol era %s', (era) => {
    test.each(Object.entries(roots))('are found, checked and read by the client: the skill %s', async (name, root) => {
      const client = await connect(era)
      const found = await skills.discoverSkills(client)
      expect(found.map(({ uri }) => uri).sort()).toEqual(uris)
      const entry = found.find(({ uri }) => uri === `${root}/SKILL.md`) ?? expect.fail('not listed')
      expect(entry.frontmatter).toEqual({ name, description: `Does ${name}.`, metadata: { version: '1.10' } })
      expect(await skills.getSkill(client, entry.uri)).toEqual(entry)
      expect(skills.checkSkillLimits(entry)).toMatchObject({ withinLimits: true })

      // Both reject where the digest, the size or the front matter is another one.
      expect(await skills.readSkill(client, entry)).toContain(`# ${name}`)
      const files = skills.manifestOf(entry) ?? expect.fail('no manifest')
      expect(files.map(({ uri }) => uri).sort()).toEqual(filesOf(root))
      const contents = await Promise.all(files.map(({ uri }) => skills.readSkillResource(client, entry, uri)))
      expect(contents).toContainEqual(expect.objectContaining({ text: 'Über alles.\r\n' }))
      expect(contents).toContainEqual(expect.objectContaining({ blob: 'iVBORwD/' }))

      const walked = await skills.walkDirectory(client, root)
      expect(walked.map(({ uri }) => uri).sort()).toEqual(filesOf(root))
    })
  })

  test('a skill file that changed since the listing is refused', async () => {
    const client = await connect('auto')
    const uri = `${roots['in-folder']}/SKILL.md`
    const before = await skills.getSkill(client, uri)
    const notes = filesOf(roots['in-folder'])[2] ?? expect.fail('no file')
    folder.write({ 'in-folder/references/eu/ü a.md': 'Another text, of another length.\n' })
    await expect(skills.readSkillResource(client, before, notes)).rejects.toThrow(/digest|size|mismatch/i)
    const after = await skills.getSkill(client, uri)
    expect(await skills.readSkillResource(client, after, notes)).toMatchObject({
      text: 'Another text, of another length.\n',
    })
    folder.write(skill('in-folder'))
  })
})
