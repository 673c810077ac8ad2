import { createHash } from 'node:crypto'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type AccessRule, compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { unavailable } from '../../src/core/errors.ts'
import type { Principal, Provider } from '../../src/core/provider.ts'
import { createHandler, type Handler } from '../../src/server/http/handler.ts'
import { describeSkills, ownSkillsAddress, ownSkillsProvider, skillLimits, withSkills } from '../../src/skills/index.ts'
import { redacted } from '../../src/wrap/redacted.ts'
import { listAll } from '../support/folder.ts'
import { live } from '../support/live.ts'
import { type MemoryEntry, memory } from '../support/memory.ts'

const head = (name: string, more = '') => `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n\n# ${name}\n`

const entries: Record<string, string | MemoryEntry> = {
  'acme/refunds/SKILL.md': head(
    'refunds',
    'license: MIT\nmetadata:\n  version: "1.10"\nnumber: 1.10\non: yes\ntags: [a, "b"]\n',
  ),
  'acme/refunds/examples/a b.md': 'an example\n',
  'acme/refunds/examples/eu/ü.md': 'another\n',
  'acme/refunds/logo.png': { bytes: new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]), mimeType: 'image/png' },
  'acme/refunds/nested/deeper/SKILL.md': head('deeper'),
  'plain/notes.md': 'no skill',
  'review/SKILL.md': head('review'),
}

const handlers: Handler[] = []
const clients: Client[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()))
  await Promise.all(handlers.splice(0).map((handler) => handler.close()))
})

interface Serving {
  readonly provider?: Provider
  readonly access?: readonly AccessRule[]
  readonly below?: readonly string[]
  readonly log?: (message: string, fields: unknown) => void
}

async function connect(principal: Principal, serving: Serving = {}) {
  const { provider = memory(entries), access, below = ['skill://team'], log = () => {} } = serving
  const mount = { address: 'skill://team', provider: describeSkills(provider) }
  const catalog = createCatalog({
    mounts: [
      { ...mount, ...(access === undefined ? {} : { access: compileAccess(access) }) },
      { address: ownSkillsAddress, provider: ownSkillsProvider() },
    ],
  })
  const view = (who: Principal) =>
    withSkills(catalog.view(who), { below, log: (_, message, fields) => log(message, fields) })
  const handler = await createHandler(view, { name: 't', version: '1', principals: 'given' })
  handlers.push(handler)
  const fetch = (input: string | URL | Request, init?: RequestInit) =>
    handler.fetch(new Request(input, init), { principal })
  const client = new Client({ name: 'c', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch }))
  clients.push(client)
  return { client, skills: new SkillsClient(client) }
}

const ada: Principal = { id: 'ada', roles: ['team'] }
const bob: Principal = { id: 'bob', roles: [] }
const refunds = 'skill://team/acme/refunds/SKILL.md'

describe('skills, to the official client', () => {
  test('are listed with their original front matter, and every file is verified', async () => {
    const { skills } = await connect(ada)
    expect(skills.supported && skills.directoryRead).toBe(true)
    const { skills: found, ttlMs, cacheScope } = await skills.list()
    expect({ ttlMs, cacheScope }).toEqual({ ttlMs: 0, cacheScope: 'private' })
    expect(found.map(({ uri }) => uri)).toEqual([
      refunds,
      'skill://team/acme/refunds/nested/deeper/SKILL.md',
      'skill://team/review/SKILL.md',
    ])
    expect(found[0]?.frontmatter).toEqual({
      name: 'refunds',
      description: 'Does refunds.',
      license: 'MIT',
      metadata: { version: '1.10' },
      number: 1.1,
      on: 'yes',
      tags: ['a', 'b'],
    })
    const files = found[0]?.resources
    if (!Array.isArray(files)) return expect.fail('no manifest')
    expect(files.map(({ uri }) => uri.slice('skill://team/acme/refunds/'.length))).toEqual(
      expect.arrayContaining([
        'SKILL.md',
        'examples/a%20b.md',
        'examples/eu/%C3%BC.md',
        'logo.png',
        'nested/deeper/SKILL.md',
      ]),
    )
    expect(files).toHaveLength(5)
    for (const skill of found)
      for (const { uri } of Array.isArray(skill.resources) ? skill.resources : [])
        expect(await skills.read(skill, uri)).toMatchObject({ verified: true })
    expect(await skills.read(found[0] ?? expect.fail('none'))).toMatchObject({
      body: expect.stringContaining('# refunds'),
    })
  })

  test('are read by their URIs, in any spelling; a URI without a skill is refused', async () => {
    const { client, skills } = await connect(ada)
    expect((await skills.get(refunds)).skill.frontmatter.name).toBe('refunds')
    const params = { uri: 'SKILL://TEAM/acme/%72efunds/SKILL.md' }
    const any = z.looseObject({ skill: z.looseObject({ uri: z.string() }) })
    expect((await client.request({ method: 'skills/get', params }, any)).skill.uri).toBe(refunds)
    for (const uri of [
      ...['skill://team/plain/SKILL.md', 'skill://team/plain/notes.md', 'skill://team/acme/refunds', `${refunds}/`],
      ...[
        `${refunds}?lines=1`,
        'skill://team/SKILL.md',
        'skill://team/acme/../review/SKILL.md',
        'file:///etc/SKILL.md',
      ],
      ...[
        'skill://team/acme%2Frefunds/SKILL.md',
        'skill://team/review/skill.md',
        'skill://hikidashi/x/SKILL.md',
        'x',
        '',
      ],
    ])
      await expect(skills.get(uri), uri).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining('No skill'),
      })
    await expect(client.request({ method: 'skills/get', params: {} }, any)).rejects.toMatchObject({ code: -32602 })
  })

  test('have directories, whose URIs have no final slash', async () => {
    const { client, skills } = await connect(ada)
    const { resources } = await skills.readDirectory('skill://team/acme/refunds')
    expect(resources.map(({ uri, mimeType }) => [uri, mimeType])).toEqual([
      [refunds, 'text/markdown'],
      ['skill://team/acme/refunds/examples', 'inode/directory'],
      ['skill://team/acme/refunds/logo.png', 'image/png'],
      ['skill://team/acme/refunds/nested', 'inode/directory'],
    ])
    const slashed = await skills.readDirectory('skill://team/acme/refunds/examples/')
    expect(slashed).toEqual(await skills.readDirectory('skill://team/acme/refunds/examples'))
    await expect(skills.readDirectory(refunds)).rejects.toMatchObject({ code: -32602 })
    await expect(skills.readDirectory('skill://team/absent')).rejects.toMatchObject({ code: -32602 })
    // The resource itself says what skill it is.
    const listed = (await client.listResources()).resources.find(({ uri }) => uri === refunds)
    expect(listed).toMatchObject({ name: 'refunds', description: 'Does refunds.', mimeType: 'text/markdown' })
  })

  test('are shown with the files that access rules allow, and a hidden skill looks like an absent one', async () => {
    const access = [
      { match: 'review/**', allow: ['team'] },
      { match: 'acme/refunds/examples/**', allow: ['team'] },
      { match: ['acme/refunds/*', 'acme/refunds/nested/**'], allow: ['*'] },
    ]
    const seen = async (who: Principal) => {
      const { skills } = await connect(who, { access })
      return { skills, found: (await skills.list()).skills }
    }
    const whole = await seen(ada)
    expect(whole.found.map(({ uri }) => uri)).toContain('skill://team/review/SKILL.md')
    const part = await seen(bob)
    expect(part.found.map(({ uri }) => uri)).toEqual([refunds, 'skill://team/acme/refunds/nested/deeper/SKILL.md'])
    expect(JSON.stringify(part.found)).not.toContain('example')
    expect((await part.skills.get(refunds)).skill).toEqual(part.found[0])
    const failure = (uri: string) => part.skills.get(uri).catch(({ code, message }) => `${code} ${message}`)
    expect(await failure('skill://team/review/SKILL.md')).toBe(await failure('skill://team/absent/SKILL.md'))
  })

  test('are verified in their redacted form', async () => {
    const key = `AKIA${'IOSFODNN7QWERTYU'}`
    const provider = redacted(memory({ 'deploy/SKILL.md': `${head('deploy')}\nUse aws_key = ${key}\n` }), {
      mode: 'mask',
    })
    const { skills } = await connect(ada, { provider })
    const [skill] = (await skills.list()).skills
    const read = await skills.read(skill ?? expect.fail('none'))
    expect(read.verified).toBe(true)
    expect(read.text).toContain('[redacted]')
    expect(read.text).not.toContain(key)
  })

  test('have their names in a listing as soon as a source that was unavailable answers again', async () => {
    const source = memory({ 'a/review/SKILL.md': { text: head('review'), version: '1' } })
    let isAway = true
    const provider = describeSkills({
      ...source,
      read: async (...asked) => (isAway ? Promise.reject(unavailable('Away.')) : source.read(...asked)),
    })
    expect(await listAll(provider)).toEqual([{ path: 'a/review/SKILL.md', version: '1' }])
    isAway = false
    expect(await listAll(provider)).toMatchObject([{ name: 'review', description: 'Does review.' }])
  })

  test('are listed anew and reported as updated when their files change', async () => {
    const source = live({ 'a/SKILL.md': head('a') })
    const { client, skills } = await connect(ada, { provider: source })
    const { skills: before } = await skills.list()
    const heard = new Promise((resolve) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri))
    })
    await client.listen({ resourceSubscriptions: ['skill://team/a/SKILL.md'] })
    source.set('a/SKILL.md', { text: `${head('a')}more\n` })
    expect(await heard).toBe('skill://team/a/SKILL.md')
    const { skills: after } = await skills.list()
    expect(after[0]?.resources).not.toEqual(before[0]?.resources)
    expect((await skills.read(after[0] ?? expect.fail('none'))).text).toContain('more')
  })

  test('are listed in pages of 100, and a malformed cursor is refused', async () => {
    const many = Object.fromEntries(Array.from({ length: 230 }, (_, i) => [`s-${i}/SKILL.md`, head(`s-${i}`)]))
    const { skills } = await connect(ada, { provider: memory(many) })
    const page = await skills.list({ cursor: Buffer.from('["skills","skill://team/s-1"]').toString('base64url') })
    expect(page.skills).toHaveLength(100)
    expect(page.nextCursor).toBeDefined()
    expect((await skills.list()).skills).toHaveLength(230)
    for (const cursor of ['', 'x', Buffer.from('["skills",1]').toString('base64url'), `${page.nextCursor}=`])
      await expect(skills.list({ cursor }), cursor).rejects.toMatchObject({ code: -32602 })
  })

  test('include the skill of hikidashi itself', async () => {
    const { skills } = await connect(ada, { below: [ownSkillsAddress] })
    const [own, ...others] = (await skills.list()).skills
    expect(others).toEqual([])
    expect(own).toMatchObject({
      uri: 'skill://hikidashi/find-and-read/SKILL.md',
      frontmatter: { name: 'find-and-read' },
    })
    expect(await skills.read(own ?? expect.fail('none'))).toMatchObject({ verified: true })
    // It has a directory in it: official scenarios take the first skill, and ask for that of a directory.
    const { resources } = await skills.readDirectory('skill://hikidashi/find-and-read')
    expect(resources.map(({ uri, mimeType }) => [uri, mimeType])).toEqual([
      ['skill://hikidashi/find-and-read/SKILL.md', 'text/markdown'],
      ['skill://hikidashi/find-and-read/references', 'inode/directory'],
    ])
  })
})

describe('a directory with a SKILL.md', () => {
  const faults: Readonly<Record<string, Readonly<Record<string, string | MemoryEntry>>>> = {
    'without front matter': { 'a/SKILL.md': '# a\n' },
    'with front matter that never ends': { 'a/SKILL.md': '---\nname: a\ndescription: b\n' },
    'with the name of another directory': { 'a/SKILL.md': head('b') },
    'with a name in capitals': { 'A/SKILL.md': head('A') },
    'with two hyphens': { 'a--b/SKILL.md': head('a--b') },
    'without a description': { 'a/SKILL.md': '---\nname: a\n---\n' },
    'with a description that is too long': { 'a/SKILL.md': `---\nname: a\ndescription: ${'x'.repeat(1025)}\n---\n` },
    'with a number that JSON does not have': { 'a/SKILL.md': head('a', 'x: .inf\n') },
    'with a number in its metadata': { 'a/SKILL.md': head('a', 'metadata:\n  version: 1.0\n') },
    'with compatibility that is no text': { 'a/SKILL.md': head('a', 'compatibility: [linux]\n') },
    'with aliases': { 'a/SKILL.md': head('a', 'x: &x [1]\ny: [*x, *x]\n') },
    'with tags': { 'a/SKILL.md': head('a', 'x: !!binary aGk=\n') },
    'with a key twice': { 'a/SKILL.md': head('a', 'name: a\n') },
    'with the prototype of all objects': { 'a/SKILL.md': head('a', '__proto__: {x: 1}\n') },
    'with a list as front matter': { 'a/SKILL.md': '---\n- name: a\n---\n' },
    'with front matter that is nested deep': { 'a/SKILL.md': head('a', `x: ${'['.repeat(8000)}\n`) },
    'with bytes that are no text': { 'a/SKILL.md': { bytes: new Uint8Array([0, 1, 2]) } },
    'with too many files': {
      'a/SKILL.md': head('a'),
      ...Object.fromEntries(Array.from({ length: skillLimits.files }, (_, i) => [`a/${i}`, 'x'])),
    },
    'with too many bytes': { 'a/SKILL.md': head('a'), 'a/x': { bytes: new Uint8Array(skillLimits.bytes) } },
  }
  for (const [title, files] of Object.entries(faults))
    test(`${title} is not served as a skill, and the log says so`, async () => {
      const told: unknown[] = []
      const log = (_: string, fields: unknown) => void told.push(fields)
      const provider = memory({ ...files, 'good/SKILL.md': head('good') })
      const { skills } = await connect(ada, { provider, log })
      expect((await skills.list()).skills.map(({ uri }) => uri)).toEqual(['skill://team/good/SKILL.md'])
      expect(told).toHaveLength(1)
      const [path = ''] = Object.keys(files)
      await expect(skills.get(`skill://team/${path}`)).rejects.toMatchObject({ code: -32602 })
    })

  test('is a skill with exactly the maximum number of files and bytes', async () => {
    const text = head('a')
    const rest = new Uint8Array(skillLimits.bytes - Buffer.byteLength(text) - 510)
    const small = Object.fromEntries(Array.from({ length: 510 }, (_, i) => [`a/${i}`, 'x']))
    const { skills } = await connect(ada, {
      provider: memory({ 'a/SKILL.md': text, 'a/x': { bytes: rest }, ...small }),
    })
    const [skill] = (await skills.list()).skills
    expect(skill?.resources).toHaveLength(512)
    const file = Array.isArray(skill?.resources) ? skill.resources.find(({ uri }) => uri.endsWith('/x')) : undefined
    expect(file).toMatchObject({
      size: rest.length,
      digest: `sha256:${createHash('sha256').update(rest).digest('hex')}`,
    })
  })
})
