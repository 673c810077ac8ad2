import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { main } from '../support/cli.ts'
import { createFolder, type Folder } from '../support/folder.ts'

vi.setConfig({ testTimeout: 60_000 })

const canary = 'CANARY-outside-of-everything'
const head = (name: string, more = '') => `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n# ${name}\n`

let outside: Folder
let folder: Folder
const clients: Client[] = []
beforeEach(() => {
  outside = createFolder()
  outside.write({ 'secret.md': canary, 'evil/SKILL.md': head('evil', `secret: ${canary}\n`), 'evil/more.md': canary })
  folder = createFolder()
})
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
  folder.remove()
  outside.remove()
})

/** The command as a host starts it in the folder. */
async function serve(): Promise<{ readonly client: Client; readonly skills: SkillsClient }> {
  const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  const args = [main, 'serve', folder.root, '--stdio']
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
  clients.push(client)
  return { client, skills: new SkillsClient(client) }
}

const own = 'skill://hikidashi/find-and-read/SKILL.md'
const addressOf = ({ root }: Folder) => `skill://${root.split('/').at(-1)?.toLowerCase()}`

describe('skills of another author', () => {
  test('serve nothing outside of their folder through links of any kind', async () => {
    folder.write({ '.claude/skills/good/SKILL.md': head('good'), '.claude/skills/good/notes.md': 'fine' })
    const at = (path: string) => join(folder.root, '.claude/skills', path)
    symlinkSync(join(outside.root, 'evil'), at('evil'))
    symlinkSync(join(outside.root, 'secret.md'), at('good/link.md'))
    symlinkSync(outside.root, at('good/all'))
    linkSync(join(outside.root, 'secret.md'), at('good/hard.md'))
    symlinkSync('.', at('good/loop'))
    mkdirSync(at('linked'))
    symlinkSync(join(outside.root, 'evil/SKILL.md'), at('linked/SKILL.md'))
    execFileSync('mkfifo', [at('good/pipe')])
    mkdirSync(at('pipe'))
    execFileSync('mkfifo', [at('pipe/SKILL.md')])
    const { client, skills } = await serve()
    const found = (await skills.list()).skills
    const address = addressOf(folder)
    expect(found.map(({ uri }) => uri)).toEqual([own, `${address}/good/SKILL.md`])
    const files = found[1]?.resources
    expect(Array.isArray(files) && files.map(({ uri }) => uri)).toEqual([
      `${address}/good/SKILL.md`,
      `${address}/good/notes.md`,
    ])
    const said = [JSON.stringify(found), JSON.stringify(await skills.readDirectory(`${address}/good`))]
    const failures = new Set<string>()
    for (const path of ['evil', 'linked', 'pipe', 'good/all/evil', 'good/loop', 'good/%2e%2e/evil', 'absent'])
      failures.add(
        await skills.get(`${address}/${path}/SKILL.md`).then(
          () => `${path} is there`,
          ({ code, message }) => `${code} ${message}`,
        ),
      )
    expect(failures.size).toBe(1)
    for (const path of ['good/link.md', 'good/hard.md', 'good/all/secret.md', 'evil/SKILL.md', 'linked/SKILL.md'])
      await expect(client.readResource({ uri: `${address}/${path}` }), path).rejects.toMatchObject({ code: -32602 })
    expect(said.join('\n')).not.toContain(canary)
  })

  test('are not found if the folder of skills is itself a link', async () => {
    folder.write({ 'README.md': '# r\n' })
    outside.write({ 'skills/evil/SKILL.md': head('evil', `secret: ${canary}\n`) })
    mkdirSync(join(folder.root, '.claude'))
    symlinkSync(join(outside.root, 'skills'), join(folder.root, '.claude/skills'))
    symlinkSync(join(outside.root), join(folder.root, '.agents'))
    symlinkSync(join(outside.root, 'skills'), join(folder.root, 'skills'))
    const { skills } = await serve()
    expect((await skills.list()).skills.map(({ uri }) => uri)).toEqual([own])
  })

  test('that are too large, too deeply nested or have too many files are left out, and the others are served', async () => {
    const aliases = `a: &a [x, x]\n${[...'bcdefghij'].map((name, i) => `${name}: &${name} [*${'abcdefghi'[i]}, *${'abcdefghi'[i]}, *${'abcdefghi'[i]}]`).join('\n')}\n`
    folder.write({
      '.agents/skills/bomb/SKILL.md': head('bomb', aliases),
      '.agents/skills/deep/SKILL.md': head('deep', `x: ${'['.repeat(10_000)}${']'.repeat(10_000)}\n`),
      '.agents/skills/long/SKILL.md': head('long', `x: ${'y'.repeat(40_000)}\n`),
      '.agents/skills/proto/SKILL.md': head('proto', '__proto__:\n  polluted: true\n'),
      '.agents/skills/many/SKILL.md': head('many'),
      ...Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`.agents/skills/many/${i}.md`, 'x'])),
      '.agents/skills/good/SKILL.md': head('good'),
    })
    const { skills } = await serve()
    const found = (await skills.list()).skills
    expect(found.map(({ uri }) => uri)).toEqual([own, `${addressOf(folder)}/good/SKILL.md`])
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  test('show no file that a folder excludes by default, such as .env or a private key', async () => {
    folder.write({
      'skills/deploy/SKILL.md': head('deploy'),
      'skills/deploy/.env': `TOKEN=${canary}`,
      'skills/deploy/id_rsa': canary,
      'skills/deploy/.git/config': canary,
    })
    const { skills } = await serve()
    const found = (await skills.list()).skills
    expect(found[1]?.resources).toHaveLength(1)
    expect((await skills.readDirectory(`${addressOf(folder)}/deploy`)).resources).toHaveLength(1)
  })
})
