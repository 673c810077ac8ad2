import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { writeHostFile } from '../../src/cli/hosts/files.ts'
import { openHook, withHook, withoutHook } from '../../src/cli/hosts/hook-files.ts'
import { formatAnswer, parseQuestion, promptHooks } from '../../src/cli/hosts/hooks.ts'
import { hosts } from '../../src/cli/hosts/table.ts'
import { ownSkillsProvider } from '../../src/skills/index.ts'
import { createPlace, hostCalled } from '../support/hosts.ts'

describe('the hook of a host', () => {
  test.each(Object.entries(promptHooks))('of %s is answered in its form', (host, { event, folder }) => {
    const asked = { prompt: 'Why?', cwd: '/work', hook_event_name: event }
    expect(parseQuestion(host, asked, {})).toEqual({ prompt: 'Why?', folder: '/work' })
    expect(JSON.parse(formatAnswer(host, 'text'))).toEqual({
      hookSpecificOutput: { hookEventName: event, additionalContext: 'text' },
    })
    // The agent may have changed its folder.
    if (folder !== undefined)
      expect(parseQuestion(host, asked, { [folder]: '/project' })).toEqual({ prompt: 'Why?', folder: '/project' })
    expect(parseQuestion(host, { ...asked, hook_event_name: 'PreToolUse' }, {})).toBeUndefined()
    expect(parseQuestion(host, { ...asked, prompt: 1 }, {})).toBeUndefined()
    expect(parseQuestion(host, { ...asked, cwd: '' }, {})).toBeUndefined()
    expect(parseQuestion(host, 'text', {})).toBeUndefined()
  })
})

describe('the file of the hooks of a host', () => {
  let machine: Awaited<ReturnType<typeof createPlace>>
  beforeAll(async () => {
    machine = await createPlace()
  })
  afterAll(() => machine.remove())

  test.each(Object.keys(promptHooks))('of %s gets our hook once, and keeps those of others', async (id) => {
    const host = hostCalled(id)
    const event = promptHooks[id]?.event ?? ''
    const { file } = (await openHook(host, 'user', machine)).opened.before
    const others = { hooks: { [event]: [{ hooks: [{ type: 'command', command: 'other' }] }] }, theme: 'dark' }
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

  test('is not there for a host that adds nothing to a prompt', async () => {
    const without = hosts.filter(({ id }) => promptHooks[id] === undefined)
    for (const host of without) await expect(openHook(host, 'user', machine)).rejects.toThrow(/has no hook/)
    expect(without.map(({ id }) => id)).toContain('cursor')
  })
})

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
