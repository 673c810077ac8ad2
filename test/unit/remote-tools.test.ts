import { describe, expect, test } from 'vitest'
import { type Access, type AccessRule, compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { openViewChannel } from '../../src/server/serve.ts'
import { meta } from '../attack/harness/wire.ts'
import { endings } from '../support/endings.ts'
import { fault, listen, scriptedModern } from '../support/mcp-servers.ts'

const address = 'remote://there'
const principal = { id: 'ada', roles: ['guest'] }

interface Wire {
  readonly [name: string]: unknown
}

/** A mount of a server of 2026-07-28 over HTTP, as a client of this server meets it. */
async function mounted(answer: Parameters<typeof scriptedModern>[0], rules?: readonly AccessRule[]) {
  const url = await listen(scriptedModern(answer))
  const logged: Wire[] = []
  const log = (level: string, message: string, facts: object = {}) => void logged.push({ level, message, ...facts })
  const provider = remote({ target: { url }, address, log, tools: true })
  const access: { readonly access?: Access } = rules === undefined ? {} : { access: compileAccess(rules) }
  const catalog = createCatalog({ mounts: [{ address, provider, ...access }], log })
  endings.push(catalog.close)
  const channel = await openViewChannel({ name: 'x', version: '1', view: catalog.view, log }, principal, 'modern')
  const ask = async (method: string, params: object = {}) => {
    const answered = await channel.request({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } })
    return answered as unknown as { readonly result: Wire; readonly error: Wire }
  }
  const names = async () => ((await ask('tools/list')).result.tools as readonly Wire[]).map(({ name }) => String(name))
  const call = (name: string, given: object = {}) => ask('tools/call', { name, arguments: given })
  return { ask, names, call, logged }
}

const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more })
const text = (said: string) => ({ content: [{ type: 'text', text: said }] })
const own = [
  'list_resources',
  'browse_directory',
  'read_resource',
  'search_in_resource',
  'search_resources',
  'browse',
  'assemble_context',
  'what_changed',
]
const theirs = (names: readonly string[]) => names.filter((name) => !own.includes(name))

describe('URIs in the metadata of a mounted server', () => {
  const claims = {
    ui: { resourceUri: 'ui://hikidashi/explorer', visibility: ['model'] },
    'ui/resourceUri': 'ui://hikidashi/explorer',
    'openai/outputTemplate': ' UI://widget/a.html',
    'com.example/parents': ['file:///etc/passwd', 'notes://secret/plan', 'plain words'],
    'com.example/nested': { deep: [{ of: 'u\ni://x/y' }] },
    'ui://key': 'a value',
    'com.example/page': 'https://example.org/about',
    'com.example/digest': 'sha256:0a1b',
  }
  const left = {
    ui: { visibility: ['model'] },
    'com.example/parents': ['plain words'],
    'com.example/page': 'https://example.org/about',
    'com.example/digest': 'sha256:0a1b',
  }
  const content = { uri: 'notes://a', text: 'x', _meta: claims }
  const prompt = { messages: [{ role: 'user', content: { type: 'resource', resource: content, _meta: claims } }] }

  test('are removed everywhere, except web addresses, and other values are kept', async () => {
    const { ask, call } = await mounted((method) => {
      if (method === 'tools/list') return { tools: [tool('a', { _meta: claims })] }
      if (method === 'tools/call')
        return {
          content: [
            { type: 'resource', resource: content },
            { type: 'resource_link', uri: 'notes://a', name: 'a', _meta: claims },
            { type: 'text', text: 'x', _meta: claims },
          ],
          _meta: claims,
        }
      if (method === 'resources/list') return { resources: [{ uri: 'notes://a', name: 'a', _meta: claims }] }
      if (method === 'resources/templates/list')
        return { resourceTemplates: [{ uriTemplate: 'notes://{+x}', name: 't', _meta: claims }] }
      if (method === 'resources/read') return { contents: [content], _meta: claims }
      if (method === 'prompts/list') return { prompts: [{ name: 'p', _meta: claims }] }
      return method === 'prompts/get' ? { ...prompt, _meta: claims } : { resources: [] }
    })
    const answers = [
      await ask('tools/list'),
      await call('a'),
      await ask('resources/list'),
      await ask('resources/templates/list'),
      await ask('resources/read', { uri: `${address}/notes/a` }),
      await ask('prompts/list'),
      await ask('prompts/get', { name: 'p' }),
    ]
    for (const { result } of answers) expect(result).toBeDefined()
    const itemsOf = (at: number, list: string) => answers[at]?.result[list] as readonly Wire[]
    const foreign = itemsOf(0, 'tools').find(({ name }) => name === 'a')
    for (const item of [foreign, itemsOf(2, 'resources')[0]]) expect(item?._meta).toMatchObject(left)
    // The first answer also has tools of this server, and their pages.
    expect(
      answers
        .slice(1)
        .map((answer) => JSON.stringify(answer))
        .join('\n'),
    ).not.toMatch(/ui:\/\/|etc\/passwd|secret|widget|x\/y/i)
    expect(JSON.stringify(foreign)).not.toMatch(/ui:\/\/|etc\/passwd|secret|widget|x\/y/i)
  })
})

describe('tools of a mounted server', () => {
  const names = ['delete/all', 'delete_one', 'read_resource', 'list all', 'delete:x']
  const serve = (method: string, params: Wire) =>
    method === 'tools/list'
      ? { tools: names.map((name) => tool(name)) }
      : method === 'tools/call'
        ? text(`theirs: ${String(params.name)}`)
        : { resources: [] }

  test('are denied by a rule on the shown name, and by one on the original name', async () => {
    const denied = await mounted(serve, [{ allow: ['*'] }, { deny: ['*'], match: '=tools/delete_*' }])
    expect(theirs(await denied.names())).toEqual(['list_all', 'there_read_resource'])
    const absent = await denied.call('no_such_tool')
    for (const name of ['delete_all', 'delete_one', 'delete/all', 'delete_x'])
      expect((await denied.call(name)).error).toEqual(absent.error)
    const shown = await mounted(serve, [{ allow: ['*'] }, { deny: ['*'], match: '=tools/there_read_*' }])
    expect(theirs(await shown.names())).not.toContain('there_read_resource')
    const byOwn = await mounted(serve, [{ allow: ['*'] }, { deny: ['*'], match: '=tools/delete/**' }])
    expect(theirs(await byOwn.names())).toEqual(['delete_x', 'delete_one', 'list_all', 'there_read_resource'])
  })

  test('are allowed by a rule on the shown name, and by one on the original name', async () => {
    const allowed = [{ allow: ['*'], match: ['=tools/delete_all', '=tools/read_resource', '=tools/list all'] }]
    const { names: seen, call } = await mounted(serve, allowed)
    expect(theirs(await seen())).toEqual(['delete_all', 'list_all', 'there_read_resource'])
    expect((await call('delete_all')).result).toMatchObject(text('theirs: delete/all'))
  })

  test('keep a valid name unchanged, even if the name of another tool is changed to it', async () => {
    const { names: seen, call } = await mounted((method, params) =>
      method === 'tools/list'
        ? { tools: [tool('get/it'), tool('get_it')] }
        : method === 'tools/call'
          ? text(String(params.name))
          : { resources: [] },
    )
    expect(theirs(await seen())).toEqual(['there_get_it', 'get_it'])
    expect((await call('get_it')).result).toMatchObject(text('get_it'))
    expect((await call('there_get_it')).result).toMatchObject(text('get/it'))
  })
})

describe('headers that repeat arguments of a tool', () => {
  const declared = (properties: object) => ({ inputSchema: { type: 'object', properties } })
  const region = { region: { type: 'string', 'x-mcp-header': 'Region' } }

  test('are sent with the call of a tool that declares them, with values in base64 where a header needs that', async () => {
    const sent: Wire[] = []
    const { call } = await mounted((method, _, request) => {
      if (method === 'tools/call') {
        const { headers } = request
        sent.push(Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-'))))
        return text('done')
      }
      const limit = { type: 'object', properties: { limit: { type: 'integer', 'x-mcp-header': 'Limit' } } }
      const flag = { type: 'boolean', 'x-mcp-header': 'Flag' }
      if (method !== 'tools/list') return { resources: [] }
      return { tools: [tool('a', declared({ ...region, flag, options: limit, other: { type: 'string' } }))] }
    })
    const calls = [
      { region: 'us-west1', flag: false, options: { limit: -7 }, other: 'x' },
      { region: 'Hello, 世界', flag: null, options: null },
      { region: ' padded ', options: {} },
      { region: 'a\r\nX-Evil: 1' },
      { region: '=?base64?x?=' },
      { region: '' },
      { region: ['not a text'] },
    ]
    for (const given of calls) expect((await call('a', given)).result).toMatchObject(text('done'))
    const encoded = (value: string) => `=?base64?${Buffer.from(value).toString('base64')}?=`
    expect(sent).toEqual([
      { 'mcp-param-region': 'us-west1', 'mcp-param-flag': 'false', 'mcp-param-limit': '-7' },
      { 'mcp-param-region': encoded('Hello, 世界') },
      { 'mcp-param-region': encoded(' padded ') },
      { 'mcp-param-region': encoded('a\r\nX-Evil: 1') },
      { 'mcp-param-region': encoded('=?base64?x?=') },
      { 'mcp-param-region': encoded('') },
      {},
    ])
  })

  test('are not looked for in a schema nested 1500 levels deep: its tool is left out with a warning, and no other', async () => {
    let deep: object = { type: 'object' }
    for (let level = 0; level < 1500; level++) deep = { type: 'object', properties: { a: deep } }
    const tools = [
      tool('deep', { inputSchema: deep }),
      tool('deepOutput', { outputSchema: deep }),
      tool('fine', declared(region)),
    ]
    const { names, logged } = await mounted((method) => (method === 'tools/list' ? { tools } : { resources: [] }))
    expect(theirs(await names())).toEqual(['fine'])
    const told = logged.filter(({ message }) => String(message).includes('nested over'))
    expect(told.map(({ level, name }) => [level, name])).toEqual([
      ['warn', 'deep'],
      ['warn', 'deepOutput'],
    ])
  })

  test('that are declared wrongly leave out their tool, with a reason, and no other tool', async () => {
    const one = (schema: object) => declared({ x: schema })
    const wrong = {
      empty: one({ type: 'string', 'x-mcp-header': '' }),
      number: one({ type: 'number', 'x-mcp-header': 'N' }),
      object: one({ type: 'object', 'x-mcp-header': 'O' }),
      untyped: one({ 'x-mcp-header': 'U' }),
      spaced: one({ type: 'string', 'x-mcp-header': 'a b' }),
      break: one({ type: 'string', 'x-mcp-header': 'a\r\nb' }),
      unnamed: one({ type: 'string', 'x-mcp-header': 7 }),
      items: one({ type: 'array', items: { type: 'string', 'x-mcp-header': 'I' } }),
      inItems: one({ type: 'array', items: { properties: { y: { type: 'string', 'x-mcp-header': 'I' } } } }),
      either: one({ anyOf: [{ type: 'string', 'x-mcp-header': 'E' }] }),
      defs: { inputSchema: { type: 'object', $defs: { d: { type: 'string', 'x-mcp-header': 'D' } } } },
      root: { inputSchema: { type: 'object', 'x-mcp-header': 'R' } },
      twice: declared({
        a: { type: 'string', 'x-mcp-header': 'Twice' },
        b: { type: 'string', 'x-mcp-header': 'twice' },
      }),
    }
    const right = {
      fine: declared(region),
      // A property may have any name, and a default any value.
      named: declared({ 'x-mcp-header': { type: 'string', default: { 'x-mcp-header': '' } } }),
    }
    const { names, logged } = await mounted((method) =>
      method === 'tools/list'
        ? { tools: Object.entries({ ...wrong, ...right }).map(([name, more]) => tool(name, more)) }
        : { resources: [] },
    )
    expect(theirs(await names())).toEqual(['fine', 'named'])
    const told = logged.filter(({ message }) => String(message).includes('its definition is invalid'))
    expect(told.map((facts) => facts.tool).sort()).toEqual(Object.keys(wrong).sort())
    for (const { level, reason } of told) expect([level, typeof reason]).toEqual(['warn', 'string'])
  })

  test('are updated when the server declares others, and the call is sent once more', async () => {
    let header = 'Region'
    let calls = 0
    const { names, call } = await mounted((method, _, request) => {
      if (method === 'tools/list')
        return { tools: [tool('a', declared({ region: { type: 'string', 'x-mcp-header': header } }))] }
      if (method !== 'tools/call') return { resources: [] }
      calls++
      return request.headers['mcp-param-zone'] === 'eu' ? text('done') : fault(-32020, 'Header mismatch')
    })
    await names()
    header = 'Zone'
    expect((await call('a', { region: 'eu' })).result).toMatchObject(text('done'))
    expect(calls).toBe(2)
    header = 'Other'
    expect((await call('a', { region: 'us' })).error).toBeDefined()
    expect(calls).toBe(4)
  })
})

describe('a mounted server', () => {
  test('whose structured result breaks the output schema of its tool gives a failure instead, and valid results are passed on', async () => {
    const outputSchema = {
      type: 'object',
      properties: { sum: { type: 'integer' }, pattern: { type: 'string', pattern: '^(a+)+$' } },
      required: ['sum'],
      additionalProperties: false,
    }
    let structured: unknown
    const { call } = await mounted((method) => {
      if (method === 'tools/list') return { tools: [tool('add', { outputSchema })] }
      return method === 'tools/call' ? { ...text('the words'), structuredContent: structured } : { resources: [] }
    })
    for (const right of [{ sum: 3 }, { sum: 3, pattern: `${'a'.repeat(40)}!` }]) {
      structured = right
      expect((await call('add')).result).toMatchObject({ ...text('the words'), structuredContent: right })
    }
    for (const wrong of [{ sum: 'three' }, { sum: 1.5 }, {}, { sum: 1, other: 2 }, [], 'text']) {
      structured = wrong
      const { result } = await call('add')
      expect(result).toMatchObject({ isError: true })
      expect(result.structuredContent).toBeUndefined()
      expect(JSON.stringify(result)).toContain('does not match its output schema')
    }
  })

  const withDefinitions = { $defs: { text: { type: 'string' }, 'a/b c~': { $anchor: 'named', type: 'string' } } }
  const node = {
    type: 'object',
    properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
    required: ['name'],
  }
  const nested = (levels: number, leaf: object): object =>
    levels === 0 ? leaf : { name: 'a', children: [nested(levels - 1, leaf)] }
  const checkedSchemas: Readonly<
    Record<string, { readonly schema: object; readonly right: object; readonly wrong: object }>
  > = {
    'to definitions': {
      schema: { ...withDefinitions, properties: { x: { $ref: '#/$defs/text' } } },
      right: { x: 'a' },
      wrong: { x: 1 },
    },
    'with escapes': {
      schema: { ...withDefinitions, properties: { x: { $ref: '#/$defs/a~1b%20c~0' } } },
      right: { x: 'a' },
      wrong: { x: 1 },
    },
    'to anchors': {
      schema: { ...withDefinitions, properties: { x: { $ref: '#named' } } },
      right: { x: 'a' },
      wrong: { x: 1 },
    },
    'to the id of a definition': {
      schema: {
        $id: 'https://example.org/answer.json',
        properties: { x: { $ref: 'text.json' } },
        $defs: { text: { $id: 'text.json', type: 'string' } },
      },
      right: { x: 'a' },
      wrong: { x: 1 },
    },
    'to other properties': {
      schema: { properties: { x: { type: 'string' }, y: { $ref: '#/properties/x' } } },
      right: { y: 'a' },
      wrong: { y: 1 },
    },
    'of draft 7': {
      schema: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        // In this draft, a reference hides the keywords beside it.
        properties: { x: { $ref: '#/definitions/text', maxLength: 1 } },
        definitions: { text: { type: 'string' } },
      },
      right: { x: 'long' },
      wrong: { x: 1 },
    },
    'with keywords beside them': {
      schema: { ...withDefinitions, properties: { x: { $ref: '#/$defs/text', maxLength: 1 } } },
      right: { x: 'a' },
      wrong: { x: 'long' },
    },
    'to the whole': {
      schema: { properties: { name: { type: 'string' }, next: { $ref: '#' } } },
      right: { name: 'a', next: { next: { name: 'b' } } },
      wrong: { name: 'a', next: { next: { name: 1 } } },
    },
    'in a tree': {
      schema: { $ref: '#/$defs/node', $defs: { node } },
      right: nested(90, { name: 'a' }),
      wrong: nested(90, { nam: 'a' }),
    },
  }

  test.each(Object.entries(checkedSchemas))(
    'has its structured results checked against a schema with references %s',
    async (_, { schema, right, wrong }) => {
      const outputSchema = { type: 'object', ...schema }
      let structured: unknown = right
      const { call } = await mounted((method) => {
        if (method === 'tools/list') return { tools: [tool('a', { outputSchema })] }
        return method === 'tools/call' ? { ...text('the words'), structuredContent: structured } : { resources: [] }
      })
      expect((await call('a')).result).toMatchObject({ ...text('the words'), structuredContent: right })
      structured = wrong
      const { result } = await call('a')
      expect(result).toMatchObject({ isError: true })
      expect(result.structuredContent).toBeUndefined()
    },
  )

  /** Schemas d0 to d59, each of which applies the next one twice to the same value. */
  const doubling = Object.fromEntries(
    Array.from({ length: 60 }, (_, n) => [`d${n}`, { allOf: Array(2).fill({ $ref: `#/$defs/d${n + 1}` }) }]),
  )
  const starts = (letter: string) => ({ properties: { x: { type: 'string', pattern: `^${letter}` } }, required: ['x'] })
  const passed: Readonly<Record<string, readonly [schema: object, structured: object]>> = {
    'with a reference to itself': [{ $ref: '#' }, { x: 1 }],
    'with a reference that leads out of it': [{ properties: { x: { $ref: 'https://example.org/x.json' } } }, { x: 1 }],
    'with a reference that leads nowhere': [{ properties: { x: { $ref: '#/$defs/x' } } }, { x: 1 }],
    'whose check never ends': [{ $ref: '#/$defs/d0', $defs: { ...doubling, d60: { required: ['y'] } } }, { x: 1 }],
    'in an unknown dialect': [{ $schema: 'https://example.org/dialect', required: ['y'] }, { x: 1 }],
    'for a value that is nested very deep': [{ $ref: '#/$defs/node', $defs: { node } }, nested(250, { nam: 'a' })],
    'that excludes a pattern': [{ not: starts('a') }, { x: 'b' }],
    'of which one form fits, by a pattern': [{ oneOf: [starts('a'), starts('b')] }, { x: 'b' }],
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    'with a condition on a pattern': [{ if: starts('a'), then: { required: ['y'] } }, { x: 'b' }],
    'whose patterns name properties elsewhere': [
      { allOf: [{ patternProperties: { '^x': {} } }], unevaluatedProperties: false },
      { x: 'b' },
    ],
  }

  test.each(Object.entries(passed))(
    'has a structured result accepted under a schema %s',
    async (_, [schema, structuredContent]) => {
      const outputSchema = { type: 'object', ...schema }
      const { call } = await mounted((method) => {
        if (method === 'tools/list') return { tools: [tool('a', { outputSchema })] }
        return method === 'tools/call' ? { ...text('the words'), structuredContent } : { resources: [] }
      })
      expect((await call('a')).result).toMatchObject({ ...text('the words'), structuredContent })
    },
  )

  // Servers made with the Python SDK refuse with 0, and others with the codes that JSON-RPC leaves to them.
  test.each([-32602, -32603, -32000, 0, 42])(
    'that refuses a prompt or the call of a tool with %i is quoted with its reason',
    async (code) => {
      const { ask, call } = await mounted((method) => {
        if (method === 'prompts/list') return { prompts: [{ name: 'p', arguments: [{ name: 'city' }] }] }
        if (method === 'tools/list') return { tools: [tool('t')] }
        return /^(?:prompts.get|tools.call)$/.test(method)
          ? fault(code, 'city: There is no Atlantis.')
          : { resources: [] }
      })
      const { error } = await ask('prompts/get', { name: 'p', arguments: { city: 'Atlantis' } })
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('city: There is no Atlantis.') })
      expect((await call('t')).result).toMatchObject({ ...text('city: There is no Atlantis.'), isError: true })
    },
  )

  test('gets URIs with lone surrogates in its own spelling, each separately', async () => {
    const theirs = ['n://a/\ud800', 'n://a/\udfff', 'n://a/\ufffd']
    const { ask } = await mounted((method, { uri }) => {
      if (method === 'resources/list') return { resources: theirs.map((one) => ({ uri: one, name: 'a' })) }
      return { contents: [{ uri, text: String(theirs.indexOf(String(uri))) }] }
    })
    const listed = (await ask('resources/list')).result.resources as readonly { readonly uri: string }[]
    expect(new Set(listed.map(({ uri }) => uri)).size).toBe(3)
    const texts = await Promise.all(
      listed.map(
        async ({ uri }) => ((await ask('resources/read', { uri })).result.contents as readonly Wire[])[0]?.text,
      ),
    )
    expect(texts.sort()).toEqual(['0', '1', '2'])
  })

  test('whose kept connection was stale is asked again for a subscription', async () => {
    let asked = 0
    const facts = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
    const url = await listen(async (request, response) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of request) chunks.push(chunk)
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString() || '{}')
      if (method === 'subscriptions/listen') {
        // The server has closed the connection when the first request arrives on it.
        if (asked++ === 0) return void response.destroy()
        const { notifications } = params
        const told = { notifications, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
        const message = { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: told }
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        return void response.write(`data: ${JSON.stringify(message)}\n\n`)
      }
      const capabilities = { resources: { subscribe: true } }
      const serverInfo = { name: 's', version: '1' }
      const result =
        method === 'server/discover'
          ? { ...facts, supportedVersions: ['2026-07-28'], capabilities, serverInfo }
          : { ...facts, resources: [{ uri: 'n://a', name: 'a' }] }
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    })
    const provider = remote({ target: { url }, address, timeoutMs: 3000 })
    const ending = new AbortController()
    endings.push(async () => {
      ending.abort()
      await provider.close?.()
    })
    await provider.watch?.(ending.signal)
    expect(await provider.follow?.('n/a')).toBe(true)
    expect(asked).toBe(2)
  })
})
