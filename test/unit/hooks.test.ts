import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeHostFile } from '../../src/cli/hosts/files.ts'
import { openHook, withHook, withoutHook } from '../../src/cli/hosts/hook-files.ts'
import { formatHookAnswer, parseHookQuestion, promptHooks } from '../../src/cli/hosts/hooks.ts'
import { opencodePlugin } from '../../src/cli/hosts/opencode-plugin.ts'
import { hosts } from '../../src/cli/hosts/table.ts'
import { ownSkillsProvider } from '../../src/skills/index.ts'
import { createPlace, hostCalled } from '../support/hosts.ts'

describe('the hook of a host', () => {
  test.each(Object.entries(promptHooks))(
    'reads the prompt and the folder that %s sends, and answers in the form that this host expects',
    (host, { event, folder }) => {
      // Cursor names the folders of its window.
      const cwd = host === 'cursor' ? { workspace_roots: ['/work', '/other'] } : { cwd: '/work' }
      const asked = { prompt: 'Why?', ...cwd, hook_event_name: event }
      expect(parseHookQuestion(host, asked, {})).toEqual({ prompt: 'Why?', folder: '/work' })
      expect(JSON.parse(formatHookAnswer(host, 'text'))).toEqual(
        host === 'cursor'
          ? { continue: true, additional_context: 'text' }
          : { hookSpecificOutput: { hookEventName: event, additionalContext: 'text' } },
      )
      // The agent may have changed its folder.
      if (folder !== undefined)
        expect(parseHookQuestion(host, asked, { [folder]: '/project' })).toEqual({ prompt: 'Why?', folder: '/project' })
      expect(parseHookQuestion(host, { ...asked, hook_event_name: 'PreToolUse' }, {})).toBeUndefined()
      expect(parseHookQuestion(host, { ...asked, prompt: 1 }, {})).toBeUndefined()
      expect(parseHookQuestion(host, { ...asked, cwd: '' }, {})).toBeUndefined()
      expect(parseHookQuestion(host, { prompt: 'Why?', hook_event_name: event }, {})).toBeUndefined()
      expect(parseHookQuestion(host, 'text', {})).toBeUndefined()
    },
  )
})

describe('the file of the hooks of a host', () => {
  let machine: Awaited<ReturnType<typeof createPlace>>
  beforeAll(async () => {
    machine = await createPlace()
  })
  afterAll(() => machine.remove())

  const settingsHooks = Object.keys(promptHooks).filter((id) => promptHooks[id]?.plugin === undefined)
  test.each(settingsHooks)('of %s gets the hook of hikidashi once, and keeps the hooks of others', async (id) => {
    const host = hostCalled(id)
    const event = promptHooks[id]?.event ?? ''
    const { file } = (await openHook(host, 'user', machine)).opened.before
    const others = {
      hooks: { [event]: [{ hooks: [{ type: 'command', command: 'other' }] }] },
      theme: 'dark',
      version: 1,
    }
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify(others))
    const write = async (edit: typeof withHook) => {
      const hook = await openHook(host, 'user', machine)
      await writeHostFile(hook.opened.before, edit(hook))
      return JSON.parse(readFileSync(file, 'utf8')) as typeof others
    }
    const added = await write(withHook)
    expect(added.hooks[event]).toHaveLength(2)
    expect(JSON.stringify(added.hooks[event]?.[1])).toContain(`pack --hook ${id}`)
    expect(await write(withHook)).toEqual(added)
    // An entry of an earlier installation is replaced.
    writeFileSync(file, JSON.stringify(added).replace('main.js', 'old/main.js'))
    expect(await write(withHook)).toEqual(added)
    expect(await write(withoutHook)).toEqual(others)
  })

  test('of cursor has only a command with a timeout, and the version of its format', async () => {
    const project = await createPlace()
    const { opened, ...hook } = await openHook(hostCalled('cursor'), 'project', project)
    expect(opened.before.file).toBe(join(project.folder, '.cursor/hooks.json'))
    const command = expect.stringMatching(/ pack --hook cursor$/)
    expect(JSON.parse(withHook({ opened, ...hook }))).toEqual({
      version: 1,
      hooks: { beforeSubmitPrompt: [{ command, timeout: 5 }] },
    })
    await project.remove()
  })

  test('does not exist for a host whose hooks cannot add to a prompt', async () => {
    const without = hosts.filter(({ id }) => promptHooks[id] === undefined)
    for (const host of without) await expect(openHook(host, 'user', machine)).rejects.toThrow(/has no hook/)
    expect(without.map(({ id }) => id)).toContain('zed')
  })
})

describe('the plugin for opencode', () => {
  let machine: Awaited<ReturnType<typeof createPlace>>
  beforeAll(async () => {
    machine = await createPlace()
  })
  afterAll(() => machine.remove())
  const open = () => openHook(hostCalled('opencode'), 'project', machine)

  test('is written as a whole, is rewritten by another installation, and never replaces the file of somebody else', async () => {
    const hook = await open()
    const { file } = hook.opened.before
    expect(file).toBe(join(machine.folder, '.opencode/plugins/hikidashi.js'))
    await writeHostFile(hook.opened.before, withHook(hook))
    const written = readFileSync(file, 'utf8')
    expect(written).toContain('"pack","--hook","opencode"')
    writeFileSync(file, written.replace('main.js', 'old/main.js'))
    const again = await open()
    expect([again.index, withHook(again), withoutHook(again)]).toEqual([0, written, ''])
    writeFileSync(file, 'export const Other = async () => ({})\n')
    await expect(open()).rejects.toThrow(/hikidashi\.js is not a plugin of hikidashi, so it was not changed/)
  })

  test('adds the context to the message as a part that only the model sees, or leaves the message as it is if there is no context', async () => {
    const program = join(machine.folder, 'program.mjs')
    writeFileSync(
      program,
      `let asked = ''
for await (const chunk of process.stdin) asked += chunk
const { prompt, cwd } = JSON.parse(asked)
if (prompt.includes('context')) console.log(JSON.stringify({ hookSpecificOutput: { additionalContext: prompt + cwd } }))`,
    )
    const ask = async (words: readonly string[], text: string) => {
      const file = join(machine.folder, `plugin-${text}.mjs`)
      writeFileSync(file, opencodePlugin(words))
      const { Hikidashi } = (await import(file)) as { readonly Hikidashi: (input: object) => Promise<Hooks> }
      const hooks = await Hikidashi({ directory: machine.folder })
      const parts: Record<string, unknown>[] = [
        { id: 'prt_1', sessionID: 's', messageID: 'm', type: 'file', url: 'file:///a' },
        { id: 'prt_2', sessionID: 's', messageID: 'm', type: 'text', text },
        { id: 'prt_3', sessionID: 's', messageID: 'm', type: 'text', text: 'of the host', synthetic: true },
      ]
      await hooks['chat.message']({}, { parts })
      return parts.slice(3)
    }
    const own = [process.execPath, program]
    expect(await ask(own, 'context')).toEqual([
      {
        ...{ id: 'prt_20', sessionID: 's', messageID: 'm', type: 'text', synthetic: true },
        text: `context${machine.folder}`,
      },
    ])
    expect(await ask(own, 'nothing')).toEqual([])
    expect(await ask([join(machine.folder, 'none')], 'context-of-none')).toEqual([])
  })
})

interface Hooks {
  readonly 'chat.message': (input: object, output: { readonly parts: object[] }) => Promise<void>
}

describe('the plugin for Claude Code', () => {
  const root = join(import.meta.dirname, '../..')
  const plugin = join(root, 'plugins/claude-code')
  const json = (...path: readonly string[]) =>
    JSON.parse(readFileSync(join(...path), 'utf8')) as Record<string, unknown>

  test('has the skill that the server brings, and the version of the package', async () => {
    const provider = ownSkillsProvider()
    const context = { principal: { id: 'x', roles: [] }, signal: new AbortController().signal }
    const paths: string[] = []
    for await (const { path } of provider.list({}, context)) {
      paths.push(path)
      const [content] = await provider.read({ path, params: new Map() }, context)
      expect(content).toMatchObject({ text: readFileSync(join(plugin, 'skills', path), 'utf8') })
    }
    const files = readdirSync(join(plugin, 'skills'), { recursive: true, withFileTypes: true })
    expect(files.filter((file) => file.isFile())).toHaveLength(paths.length)
    expect(json(plugin, '.claude-plugin/plugin.json').version).toBe(json(root, 'package.json').version)
  })

  test('is in the marketplace of the repository, and runs the hook', () => {
    const { plugins } = json(root, '.claude-plugin/marketplace.json') as { plugins: { name: string; source: string }[] }
    expect(plugins).toEqual([expect.objectContaining({ name: 'hikidashi', source: './plugins/claude-code' })])
    expect(JSON.stringify(json(plugin, 'hooks/hooks.json'))).toContain('hikidashi pack --hook claude-code')
  })
})
