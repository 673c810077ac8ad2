import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { run } from '../support/cli.ts'
import { useArena, type WireName, wireNames } from './harness/arena.ts'
import { guises, steering, unprintable } from './harness/guises.ts'
import { eachWire } from './harness/wires.ts'

const arena = useArena({ guises: true })

interface Listed {
  readonly uri: string
  readonly name: string
  readonly title?: string
  readonly mimeType?: string
  readonly size?: number
  readonly annotations?: Readonly<Record<string, unknown>>
  readonly icons?: readonly { readonly src: string }[]
}

async function listed(name: WireName): Promise<readonly Listed[]> {
  const { message } = await arena.ask(arena.wire(name), 'resources/directory/read', { uri: 'guise://hostile/' })
  return (message?.result?.resources ?? []) as readonly Listed[]
}

describe('metadata of a hostile entry:', () => {
  eachWire(wireNames)('valid members are sent, and invalid ones are left out, over %s (UI27, UI28)', async (name) => {
    const wire = arena.wire(name)
    const { message, raw } = await arena.ask(wire, 'resources/directory/read', { uri: 'guise://hostile/' })
    const resources = (message?.result?.resources ?? []) as readonly Listed[]
    expect(resources).toHaveLength(Object.keys(guises).length)
    const at = (path: string) =>
      resources.find(({ uri }) => uri === `guise://hostile/${encodeURIComponent(path)}`) as Listed
    for (const i of Array(10).keys()) expect(at(`type-${i}`), `type-${i}`).not.toHaveProperty('mimeType')
    for (const path of ['numbers.txt', 'numbers-too-large.txt', 'numbers-too-small.txt']) {
      expect(at(path)).not.toHaveProperty('size')
      expect(at(path)).not.toHaveProperty('annotations')
    }
    expect(at('audience.txt').annotations).toEqual({ audience: ['user'] })
    expect(at('markup.txt').title).toContain('<img')
    expect(raw.includes('X-Injected')).toBe(false)
    for (const path of Object.keys(guises)) {
      const answer = await arena.read(wire, `guise://hostile/${encodeURIComponent(path)}`)
      const [content] = (answer.message?.result?.contents ?? []) as readonly Listed[]
      if (path.startsWith('type-')) expect(content).not.toHaveProperty('mimeType')
      if (path === 'markup.txt') expect(content?.mimeType).toBe('text/html')
      expect(answer.headers?.map(([header]) => header) ?? []).not.toContain('x-injected')
      if (wire.transport === 'http') expect(answer.headers).toContainEqual(['content-type', 'application/json'])
    }
  })

  eachWire(wireNames)('only icons with https: or data: URIs are sent over %s (UI17)', async (name) => {
    const { icons } = (await listed(name)).find(({ uri }) => uri.endsWith('icons.txt')) ?? {}
    expect(icons?.map(({ src }) => src)).toEqual(['https://example.org/icon.png', 'data:image/png;base64,AA=='])
  })

  eachWire(wireNames)('names and titles are sent without control characters over %s (UI16, UI26)', async (name) => {
    for (const { name: shown, title = '' } of await listed(name))
      expect(shown + title).not.toMatch(/\p{Cc}|\p{Zl}|\p{Zp}/u)
  })
})

describe('in a terminal,', () => {
  const commands: Readonly<Record<string, readonly string[]>> = {
    ls: ['ls', 'guise://hostile/'],
    'ls --long': ['ls', '--long', 'guise://hostile/'],
    'ls --recursive --long': ['ls', '--recursive', '--long', 'guise://hostile/'],
    complete: ['complete', 'guise://hostile/'],
    templates: ['templates'],
    'read of an absent resource': ['read', `guise://hostile/${encodeURIComponent('none\u202e')}`],
    'read of an invalid URI': ['read', `guise://hostile/${steering[0]}\u202e`],
  }

  test.each(Object.entries(commands))(
    '%s prints no control character of a name or title (UI16, UI21, UI26)',
    async (_, args) => {
      const url = String(arena.http.url)
      const { out, err } = await run([...args, '--url', url], { cwd: arena.world.root })
      expect(out + err).not.toMatch(unprintable)
      expect((out + err).length).toBeGreaterThan(0)
    },
  )

  test('control characters in names of files and in arguments are not printed (UI21)', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hikidashi-terminal-'))
    for (const text of steering) writeFileSync(join(folder, `a${text.replaceAll('/', '')}b`), '')
    for (const args of [
      ['ls', '--long', folder],
      ['ls', `file://${folder}/\u001b[31m`],
      ['serve', '--config', join(folder, 'a\u001b[6nb')],
      ['check', '--config', join(folder, 'none\u202e')],
    ]) {
      const { out, err } = await run(args, { cwd: folder })
      expect(out + err, args[0]).not.toMatch(unprintable)
    }
    rmSync(folder, { recursive: true })
  })
})
