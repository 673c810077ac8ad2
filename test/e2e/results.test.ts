import { mkdtempSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Authorized, ask, serveAuthorized } from '../support/authorized.ts'
import { main, run } from '../support/cli.ts'
import { runHere } from '../support/cli-here.ts'
import { analysisOf } from '../support/results.ts'

// Several processes: slow where the machine is busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const address = 'wallbounce://project'
const secret = 'a-secret-that-is-known'
const patience = { timeout: 60_000, interval: 50 }

/** Where the servers of these tests keep their stores, instead of the home of whoever runs them. */
const state = mkdtempSync(join(tmpdir(), 'hikidashi-state-'))
const stateBefore = process.env.XDG_STATE_HOME
process.env.XDG_STATE_HOME = state
process.env.RESULTS_TEST_SECRET = secret
afterAll(() => {
  if (stateBefore === undefined) delete process.env.XDG_STATE_HOME
  else process.env.XDG_STATE_HOME = stateBefore
  delete process.env.RESULTS_TEST_SECRET
  rmSync(state, { recursive: true, force: true })
})

const mounts = {
  [address]: { provider: 'results', write: ['editor'], language: 'ja' },
  'wallbounce://closed': { provider: 'results', write: ['editor', 'chief'], access: ['chief'] },
  'wallbounce://quiet': { provider: 'results' },
}

/** Puts from another process. */
async function put(cwd: string, value: unknown, ...words: readonly string[]) {
  const { code, out, err } = await run(['results', 'put', '-', '--json', '--mount', address, ...words], {
    cwd,
    input: JSON.stringify(value),
  })
  if (code !== 0) throw new Error(err)
  return JSON.parse(out) as readonly { readonly id: string; readonly uri: string; readonly status: string }[]
}

interface Heard {
  readonly client: Client
  /** What it was told of: URIs, and `listed`. */
  readonly heard: readonly string[]
  /** When it was told so last, by what it was told. */
  readonly times: ReadonlyMap<string, number>
}

/** A client that notes what it is told. */
async function connected(
  transport: StdioClientTransport | StreamableHTTPClientTransport,
  mode: 'legacy' | 'auto',
): Promise<Heard> {
  const client = new Client({ name: 'reader', version: '1' }, { versionNegotiation: { mode } })
  const heard: string[] = []
  const times = new Map<string, number>()
  client.fallbackNotificationHandler = async ({ method, params }) => {
    const what = method.endsWith('list_changed') ? 'listed' : String(params?.uri)
    heard.push(what)
    times.set(what, Date.now())
  }
  await client.connect(transport)
  return { client, heard, times }
}

describe('over HTTP, with tokens,', () => {
  let server: Authorized
  let reader: string
  let editor: string
  let chief: string
  beforeAll(async () => {
    server = await serveAuthorized({ tokens: 'tokens.json' }, mounts)
    reader = await server.token('add', '--role', 'reader')
    editor = await server.token('add', '--role', 'editor')
    chief = await server.token('add', '--role', 'chief', '--role', 'editor')
  })
  afterAll(() => server?.stop())

  const clientAs = (token: string, mode: 'legacy' | 'auto') =>
    connected(
      new StreamableHTTPClientTransport(new URL(server.url), {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      }),
      mode,
    )
  const names = async (token: string) => {
    const { tools } = (await ask(server.url, token, 'tools/list')).json().result as { tools: { name: string }[] }
    // Everybody whose host is not known has the tools to read with besides.
    return tools
      .map(({ name }) => name)
      .filter((name) => !/_resources?$|_directory$|_context$|^browse$|^what_changed$/.test(name))
  }
  const post = (path: string, token: string | undefined, body: unknown, headers: Record<string, string> = {}) =>
    fetch(new URL(path, server.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        connection: 'close',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  /** Lets a result be over in a moment: in a longer one where that is over before it is posted. Answers when. */
  const postBriefly = async (id: string): Promise<number> => {
    for (let ms = 1000; ms < 60_000; ms *= 2) {
      const expires = new Date(Date.now() + ms).toISOString()
      const { status } = await post('/results/project', editor, analysisOf('Changed?', { id, expires }))
      if (status === 200) return Date.parse(expires)
    }
    throw new Error('it was over each time')
  }

  test.each(['legacy', 'auto'] as const)(
    'the official client (%s) reads results, looks them up, completes tags, and is notified',
    async (mode) => {
      const [first] = await put(server.home, analysisOf(`About ${mode}?`, { tags: [mode] }))
      const { client, heard, times } = await clientAs(reader, mode)
      const textAt = async (uri: string) => {
        const { contents } = await client.readResource({ uri })
        return (contents[0] as { text: string }).text
      }
      expect(JSON.parse(await textAt(first?.uri ?? ''))).toMatchObject({ prompt: `About ${mode}?`, language: 'ja' })
      expect(await textAt(`${first?.uri}/report`)).toMatch(/^# 壁打ち分析/)
      expect(await textAt(`${first?.uri}/report?lang=en`)).toMatch(/^# Wall-bounce/)
      const lookup = `${address}/lookup?prompt=${encodeURIComponent(`about ${mode}?`)}&taskType=basic`
      expect(JSON.parse(await textAt(lookup))).toMatchObject({ match: 'exact', analysis: { id: first?.id } })
      const { completion } = await client.complete({
        ref: { type: 'ref/resource', uri: `${address}/by-tag/{tag}` },
        argument: { name: 'tag', value: mode },
      })
      expect(completion.values).toEqual([mode])
      const listed = (await client.listResources()).resources.map(({ uri }) => uri)
      expect(listed).toContain(`${first?.uri}/votes/model-a`)

      const watched = [`${address}/recent`, `${address}/by-tag/${mode}`, first?.uri ?? '']
      if (mode === 'auto') await client.listen({ resourceSubscriptions: watched, resourcesListChanged: true })
      else for (const uri of watched) await client.subscribeResource({ uri })
      const [second] = await put(server.home, analysisOf(`Another about ${mode}?`, { tags: [mode] }))
      for (const what of [`${address}/recent`, `${address}/by-tag/${mode}`, 'listed'])
        await vi.waitFor(() => expect(heard).toContain(what), patience)
      expect(JSON.parse(await textAt(`${address}/by-tag/${mode}`)).results[0].id).toBe(second?.id)
      await put(server.home, { ...analysisOf('Changed?'), id: first?.id })
      await vi.waitFor(() => expect(heard).toContain(first?.uri), patience)
      expect(JSON.parse(await textAt(first?.uri ?? ''))).toMatchObject({ prompt: 'Changed?' })
      // What expires is told too, when it does.
      const over = await postBriefly(first?.id ?? '')
      await vi.waitFor(() => expect(times.get(first?.uri ?? '')).toBeGreaterThanOrEqual(over), patience)
      await expect(client.readResource({ uri: first?.uri ?? '' })).rejects.toThrow()
      await client.close()
    },
  )

  test('the tool save_analysis is visible only to callers who may write and see; it stores a result once, and names a missing field', async () => {
    expect(await names(reader)).toEqual([])
    expect(await names(editor)).toEqual(['save_analysis'])
    const { client } = await clientAs(editor, 'legacy')
    const { tools } = await client.listTools()
    expect(tools[0]).toMatchObject({
      name: 'save_analysis',
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      inputSchema: { type: 'object', required: expect.arrayContaining(['prompt', 'votes', 'consensus']) },
    })
    // What needs another role is not among the places that it can be saved to.
    expect(JSON.stringify(tools)).not.toContain('closed')
    const saved = await client.callTool({ name: 'save_analysis', arguments: { ...analysisOf('By tool?') } })
    expect(saved).toMatchObject({
      structuredContent: { status: 'created' },
      content: [{ type: 'text' }, { type: 'resource_link' }],
    })
    const { uri } = saved.structuredContent as { uri: string }
    expect((await client.readResource({ uri })).contents[0]).toMatchObject({ uri, mimeType: 'application/json' })
    expect(await client.callTool({ name: 'save_analysis', arguments: { ...analysisOf('By tool?') } })).toMatchObject({
      structuredContent: { status: 'unchanged', uri },
    })
    expect(await client.callTool({ name: 'save_analysis', arguments: { prompt: 'x' } })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('votes: It is missing.') }],
    })
    await client.close()

    const call = async (token: string, name: string, given: object) =>
      ask(server.url, token, 'tools/call', { name, arguments: { ...given } }, { 'mcp-name': name })
    const refused = await call(reader, 'save_analysis', analysisOf('No.'))
    const unknown = await call(reader, 'no_such_tool', analysisOf('No.'))
    expect([refused.status, refused.text]).toEqual([unknown.status, unknown.text])
    expect(refused.json().error).toMatchObject({ code: -32602, message: 'There is no such tool.' })
    expect((await call(editor, 'no_such_tool', {})).json().error).toMatchObject({ code: -32602 })
  })

  test('a caller who may write to several mounts must name one', async () => {
    const { client } = await clientAs(chief, 'auto')
    const [tool] = (await client.listTools()).tools
    expect(tool?.inputSchema).toMatchObject({
      properties: { to: { enum: [address, 'wallbounce://closed'] } },
      required: expect.arrayContaining(['to']),
    })
    const save = (given: object) => client.callTool({ name: 'save_analysis', arguments: { ...given } })
    expect(await save(analysisOf('Where?'))).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^"to" must be one of /) }],
    })
    expect(await save({ to: 'wallbounce://closed', ...analysisOf('There.') })).toMatchObject({
      structuredContent: { uri: expect.stringMatching(/^wallbounce:\/\/closed\/results\//) },
    })
    await client.close()
  })

  test('a POST stores one or several results and reports each outcome, and an invalid request is refused as a whole', async () => {
    const made = await post('/results/project', editor, analysisOf('By post?', { id: 'posted' }))
    expect([made.status, made.headers.get('location')]).toEqual([201, `${address}/results/posted`])
    expect(await made.json()).toMatchObject({ id: 'posted', status: 'created', uri: `${address}/results/posted` })
    const again = await post('/results/project', editor, analysisOf('By post?', { id: 'posted' }))
    expect([again.status, await again.json()]).toMatchObject([200, { status: 'unchanged' }])
    const several = await post('/results/project', editor, [
      analysisOf('p1', { id: 'p1' }),
      analysisOf('p2', { id: 'p2' }),
    ])
    expect([several.status, await several.json()]).toMatchObject([201, { results: [{ id: 'p1' }, { id: 'p2' }] }])

    // All of them are looked at before the first is kept.
    const half = await post('/results/project', editor, [analysisOf('p3', { id: 'p3' }), { prompt: 'p4' }])
    expect([half.status, await half.json()]).toMatchObject([422, { error: { data: { index: 1, field: 'taskType' } } }])
    expect(
      (await ask(server.url, editor, 'resources/read', { uri: `${address}/results/p3` })).json().error,
    ).toBeDefined()
    const statusOf = async (...args: Parameters<typeof post>) => (await post(...args)).status
    expect(await statusOf('/results/project', editor, '{')).toBe(400)
    expect(await statusOf('/results/project', editor, '{"prompt":1,"prompt":2}')).toBe(400)
    expect(await statusOf('/results/project', editor, {})).toBe(422)
    expect(await statusOf('/results/project', editor, [])).toBe(422)
    expect(await statusOf('/results/project', editor, analysisOf('x'), { 'content-type': 'text/plain' })).toBe(415)
    expect(await statusOf('/results/project', editor, `"${'x'.repeat(2 ** 20)}"`)).toBe(413)
    const got = await fetch(new URL('/results/project', server.url), { headers: { authorization: `Bearer ${editor}` } })
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test('a caller who may not write gets 404 for the POST, as for a mount that does not exist', async () => {
    const seen = async (path: string, token: string | undefined, method = 'POST') => {
      const response = await fetch(new URL(path, server.url), {
        method,
        headers: {
          'content-type': 'application/json',
          connection: 'close',
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        ...(method === 'POST' ? { body: JSON.stringify(analysisOf('x')) } : {}),
      })
      const { date: _, ...headers } = Object.fromEntries(response.headers)
      return { status: response.status, headers, text: await response.text() }
    }
    const nothing = await seen('/results/no-such-mount', reader)
    expect(nothing.status).toBe(404)
    const places: readonly (readonly [string, string])[] = [
      ['/results/project', reader],
      ['/results/closed', editor],
      ['/results/quiet', chief],
      ['/results/', chief],
      ['/results/project/', chief],
      ['/results/project?x=1', chief],
      ['/results/../results/project/x', chief],
    ]
    for (const [path, token] of places) expect(await seen(path, token), path).toEqual(nothing)
    const got = await seen('/results/project', reader, 'GET')
    expect(got).toEqual(await seen('/results/no-such-mount', reader, 'GET'))
    expect(got.status).toBe(404)
    // Nobody is told by a challenge which of them there are.
    const asked = await seen('/results/project', undefined)
    expect(asked.status).toBe(401)
    expect(await seen('/results/no-such-mount', undefined)).toEqual(asked)
  })

  test('a known secret in a result is redacted when the result is read, and is refused as an id', async () => {
    const { id } = (await (await post('/results/project', editor, analysisOf(`It is ${secret}!`))).json()) as {
      id: string
    }
    const answer = await ask(server.url, reader, 'resources/read', { uri: `${address}/results/${id}` })
    expect(answer.text).toContain('[redacted]')
    expect(answer.text).not.toContain(secret)
    const refused = await post('/results/project', editor, { ...analysisOf('x'), id: secret })
    expect(refused.status).toBe(422)
    expect(await refused.text()).not.toContain(secret)
    expect(server.log()).not.toContain(secret)
  })
})

describe('over stdio,', () => {
  let home: string
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'hikidashi-results-home-'))
    for (const [folder, roles] of [
      ['with', ['editor']],
      ['without', ['reader']],
    ] as const) {
      await mkdir(join(home, folder))
      const config = { mounts: { [address]: mounts[address] }, roles, store: { sqlite: '../store.sqlite' } }
      await writeFile(join(home, folder, 'hikidashi.json'), JSON.stringify(config))
    }
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  const open = (folder: string, mode: 'legacy' | 'auto') => {
    const env = { PATH: process.env.PATH ?? '', XDG_STATE_HOME: state }
    return connected(
      new StdioClientTransport({
        command: process.execPath,
        args: [main, 'serve', '--config', 'hikidashi.json', '--stdio'],
        cwd: join(home, folder),
        env,
        stderr: 'ignore',
      }),
      mode,
    )
  }

  test('a result that one process saves is announced to the client of another, and only a caller with the role can save', async () => {
    const [writer, reader] = await Promise.all([open('with', 'legacy'), open('without', 'auto')])
    expect((await reader.client.listTools()).tools.map(({ name }) => name)).not.toContain('save_analysis')
    await expect(reader.client.callTool({ name: 'save_analysis', arguments: {} })).rejects.toMatchObject({
      code: -32602,
    })
    await reader.client.listen({ resourceSubscriptions: [`${address}/recent`], resourcesListChanged: true })
    const saved = await writer.client.callTool({
      name: 'save_analysis',
      arguments: { ...analysisOf('Through a pipe?') },
    })
    const { uri } = saved.structuredContent as { uri: string }
    for (const what of [`${address}/recent`, 'listed'])
      await vi.waitFor(() => expect(reader.heard).toContain(what), patience)
    expect((await reader.client.readResource({ uri })).contents).toHaveLength(1)
    await Promise.all([writer.client.close(), reader.client.close()])
  })
})

describe('hikidashi results put', () => {
  let home: string
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'hikidashi-results-cli-'))
    const config = {
      mounts: { [address]: { provider: 'results', maxBytes: '64KiB' }, 'wallbounce://other': { provider: 'results' } },
    }
    await writeFile(join(home, 'hikidashi.json'), JSON.stringify(config))
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  test('accepts an array and lines of results, and stores none if one is wrong', async () => {
    const lines = [analysisOf('l1', { id: 'l1' }), analysisOf('l2', { id: 'l2' })].map((one) => JSON.stringify(one))
    await writeFile(join(home, 'lines.jsonl'), `${lines.join('\n')}\n\n`)
    const words = ['--mount', `${address}/`]
    const kept = await runHere(['results', 'put', 'lines.jsonl', ...words], { cwd: home })
    expect([kept.code, kept.out]).toEqual([0, `created  ${address}/results/l1\ncreated  ${address}/results/l2\n`])
    const input = JSON.stringify([analysisOf('l1', { id: 'l1' }), analysisOf('l3', { id: 'l3' })])
    const array = await run(['results', 'put', '-', ...words], { cwd: home, input })
    expect([array.code, array.out]).toEqual([0, `unchanged  ${address}/results/l1\ncreated    ${address}/results/l3\n`])
    await writeFile(join(home, 'bad.jsonl'), `${JSON.stringify(analysisOf('l4', { id: 'l4' }))}\n{"prompt":"x"}\n`)
    const wrong = await runHere(['results', 'put', 'bad.jsonl', ...words], { cwd: home })
    expect([wrong.code, wrong.out]).toEqual([1, ''])
    expect(wrong.err).toContain('bad.jsonl:2: taskType: It must be one of')
    const listed = await runHere(['ls', '-r'], { cwd: home })
    expect(listed.out).toContain(`${address}/results/l3\n`)
    expect(listed.out).not.toContain('l4')
    expect((await runHere(['check'], { cwd: home })).code).toBe(0)
  })

  test('stores none of the results of a file if one is too large', async () => {
    const large = analysisOf('l6', { id: 'l6', consensus: { content: 'x'.repeat(70_000), confidence: 1 } })
    await writeFile(join(home, 'large.json'), JSON.stringify([analysisOf('l5', { id: 'l5' }), large]))
    const { code, out, err } = await runHere(['results', 'put', 'large.json', '--mount', address], { cwd: home })
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain('large.json[1]: The analysis must have at most 65536 bytes')
    expect((await runHere(['ls', '-r'], { cwd: home })).out).not.toContain('l5')
  })

  test('reports a missing mount, file or analysis, and input that is not JSON', async () => {
    const one = JSON.stringify(analysisOf('x'))
    const said = async (words: readonly string[], input = one) => {
      const { code, err } = await run(['results', 'put', ...words], { cwd: home, input })
      return `${code} ${err}`
    }
    expect(await said(['-'])).toMatch(/^2 .*--mount wallbounce:\/\/project, or --mount wallbounce:\/\/other/)
    expect(await said(['-', '--mount', 'wallbounce://none'])).toMatch(/^2 .*No mount for results is at/)
    expect(await said(['missing.json', '--mount', address])).toMatch(/^1 .*cannot be read \(ENOENT\)/)
    expect(await said(['-', '--mount', address], 'no json')).toMatch(/^1 .*stdin:1: This is not valid JSON/)
    expect(await said(['-', '--mount', address], '')).toMatch(/^1 .*contains no analysis/)
  })
})
