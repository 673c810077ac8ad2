import { randomBytes } from 'node:crypto'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { isResourceError } from '../../src/core/errors.ts'
import { createCatalog, type Provider } from '../../src/index.ts'
import { git } from '../../src/providers/git/index.ts'
import { serveHttp, serveStdio } from '../../src/server/index.ts'
import { useArena } from '../support/attack-arena.ts'
import { plantBombs, settingsBombs, tagged, textBombs } from '../support/attack-bombs.ts'
import { jsonHeaders, modernHeaders } from '../support/attack-http.ts'
import { startConfigured } from '../support/attack-target.ts'
import { type Answer, type Message, type Wire, withMeta } from '../support/attack-wire.ts'
import type { World } from '../support/attack-world.ts'
import { context, createGitFolder } from '../support/git.ts'
import { hasTurn } from '../support/volume.ts'

// What is small where it lies and large where it is read. The built command line serves all of it; the arena looks after
// whether it still answers others meanwhile, and lets go of what it took.

const planted = new WeakMap<World, ReturnType<typeof plantBombs>>()

/** The processes are started one beside the other: the bombs are there once. */
function bombsIn(world: World): ReturnType<typeof plantBombs> {
  const found = planted.get(world) ?? plantBombs(world)
  planted.set(world, found)
  return found
}

const arena = useArena(
  {},
  (world, { transport }) => {
    const { settings } = bombsIn(world)
    return startConfigured(world, transport, {
      mounts: {
        [world.address]: {
          provider: 'files',
          root: world.root,
          frontMatter: ['bombs/*.md'],
          readings: { maxBytes: '2MiB' },
        },
        // A machine that is busy is not what is tested.
        'config://bombs': { provider: 'settings', root: settings, timeout: '25s' },
      },
    })
  },
  // A worker for each kind of reading, and what parsers leave to the collector of garbage.
  { slack: { descriptors: 64, threads: 24, resident: 900 } },
)

/** Each bomb once over each transport. */
const two = (): readonly Wire[] => [arena.wire('stdio 2025-11-25'), arena.wire('http 2026-07-28')]

interface Part {
  readonly uri: string
  readonly text?: string
  readonly blob?: string
}

const partOf = ({ message, raw }: Answer): Part => {
  const [part] = (message?.result?.contents ?? []) as readonly Part[]
  expect(part, raw.subarray(0, 400).toString()).toBeDefined()
  return part as Part
}

const inBombs = (name: string) => `${arena.world.address}/bombs/${name}`

describe('settings files that expand enormously', () => {
  test('BM01, BM02, BM04, BM06, BM17: each gives an answer, or an error with the place and the limit', async () => {
    const ways = ['', '?pointer=/a', '?as=json']
    for (const [wire, queries] of [
      [arena.wire('stdio 2025-11-25'), ['', '?pointer=/a']],
      [arena.wire('http 2026-07-28'), ['?as=json']],
    ] as const)
      for (const [bomb, [name, { row, ends }]] of Object.entries(settingsBombs).entries())
        for (const query of queries) {
          // In a tenth of the volume each in one of these ways, in turn.
          if (!hasTurn(bomb, ways.indexOf(query), ways.length)) continue
          const answer = await arena.read(wire, `config://bombs/${name}${query}`)
          const { error } = answer.message ?? {}
          const what = `${row} ${name}${query} over ${wire.name}: ${answer.raw.subarray(0, 300)}`
          if (ends === 'fine') expect(error === undefined || query === '?pointer=/a', what).toBe(true)
          else {
            expect(error, what).toMatchObject({ code: -32602 })
            expect(error?.message, what).toMatch(
              /^(?:The file cannot be read as \w+\. Line \d+, column \d+: |A file of settings is read up to)/,
            )
          }
          expect(answer.raw.length, what).toBeLessThan(5_000_000)
        }
  })

  test('BM01: the nodes that an alias repeats are written out only up to the limit', async () => {
    for (const wire of two()) {
      const { message, raw } = await arena.read(wire, 'config://bombs/shared.yaml?as=json')
      expect(message?.result === undefined ? 0 : raw.length).toBeLessThan(4_000_000)
    }
  })

  test('BM03, BM04: YAML tags run nothing, and ambiguous values are read as in YAML 1.2', async () => {
    for (const wire of two()) {
      expect(partOf(await arena.read(wire, 'config://bombs/tagged.yaml')).text).toBe(tagged.text)
      expect(partOf(await arena.read(wire, 'config://bombs/tagged.yaml?as=json')).text).toBe(tagged.json)
      expect(partOf(await arena.read(wire, 'config://bombs/tagged.yaml?pointer=/__proto__/polluted')).text).toBe('1\n')
      const { message } = await arena.read(wire, 'config://bombs/tagged.yaml?pointer=/toString')
      expect(message?.error).toBeDefined()
    }
  })

  test('BM02, BM06: completing a pointer into such a file stays within the limits too', async () => {
    for (const name of Object.keys(settingsBombs)) {
      const { message } = await arena.ask(arena.wire('http 2026-07-28'), 'completion/complete', {
        ref: { type: 'ref/resource', uri: 'config://bombs/{+path}{?pointer,as}' },
        argument: { name: 'pointer', value: '/' },
        context: { arguments: { path: name } },
      })
      const { values = [] } = (message?.result?.completion ?? {}) as { readonly values?: readonly string[] }
      expect(values.length).toBeLessThanOrEqual(100)
    }
  })
})

describe('JSON messages', () => {
  test('BM06: a message with many names, or with names whose hashes collide, is answered', async () => {
    for (const wire of two()) {
      const many = Object.fromEntries(Array.from({ length: 60_000 }, (_, i) => [`${i * 65_536}`, 0]))
      const { message, raw } = await arena.ask(wire, 'resources/templates/list', { many })
      expect(message?.result?.resourceTemplates, raw.subarray(0, 300).toString()).toBeDefined()
    }
  })

  test('BM07: metadata that is nested too deeply gives an error with the id of the request, and other requests are answered', async () => {
    let meta: unknown = 'bottom'
    for (let i = 0; i < 50_000; i++) meta = [meta]
    const deep: Provider = {
      list: async function* () {},
      read: async ({ path }) => [{ text: path, ...(path === 'deep' ? { meta: { meta } } : {}) }],
    }
    const log = () => {}
    const catalog = createCatalog({ mounts: [{ address: 'deep://source', provider: deep }], log })
    const options = { name: 'deep', version: '0', view: catalog.view, log }
    const request = (path: string) => {
      const params = { uri: `deep://source/${path}` }
      return { jsonrpc: '2.0', id: path, method: 'resources/read', params: withMeta(params, true) }
    }
    const expected = { jsonrpc: '2.0', id: 'deep', error: { code: -32603, message: 'Internal error' } }

    const [input, output] = [new PassThrough(), new PassThrough()]
    const serving = serveStdio({ ...options, input, output })
    for (const path of ['deep', 'plain']) input.write(`${JSON.stringify(request(path))}\n`)
    input.end()
    await serving
    output.end()
    const lines = (await output.toArray())
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Message)
    expect(lines.find(({ id }) => id === 'deep')).toEqual(expected)
    expect(lines.find(({ id }) => id === 'plain')?.result).toBeDefined()

    const service = await serveHttp({ ...options, host: '127.0.0.1', port: 0 })
    const post = async (path: string) => {
      const { params, method, ...rest } = request(path)
      const headers = { ...jsonHeaders, ...modernHeaders(method, params) }
      const response = await fetch(service.url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ ...rest, method, params }),
      })
      return (await response.json()) as Message
    }
    expect(await post('deep')).toEqual(expected)
    expect((await post('plain')).result).toBeDefined()
    await service.close()
    await catalog.close()
  })
})

describe('files that expand when they are decoded', () => {
  test('BM08, BM09, BM16: a document is unpacked and read within its limits, and loads nothing that it refers to', async () => {
    for (const wire of two()) {
      for (const name of ['bomb.docx', 'entities.docx']) {
        expect(
          Buffer.from(partOf(await arena.read(wire, inBombs(name))).blob ?? '', 'base64')
            .subarray(0, 2)
            .toString(),
        ).toBe('PK')
        const { message, raw } = await arena.read(wire, `${inBombs(name)}?as=text`)
        expect(message?.error?.code, raw.subarray(0, 300).toString()).toBe(-32602)
        expect(raw.toString()).not.toContain('root:')
      }
    }
  })

  test('BM11: the length in base64 counts towards the limit of the transport', async () => {
    // The schema's own check of base64 runs out of stack with so much of it.
    const read = async (wire: Wire, query: string) => wire.call('resources/read', { uri: inBombs('blob.dat') + query })
    const stdio = arena.wire('stdio 2026-07-28')
    const over = await read(stdio, '')
    expect(over.message?.error).toMatchObject({ code: -32602, data: { reason: 'too-large' } })
    const part = partOf(await read(stdio, '?bytes=0-1048575'))
    expect(Buffer.from(part.blob ?? '', 'base64').length).toBe(1_048_576)
    const whole = partOf(await read(arena.wire('http 2026-07-28'), ''))
    expect(Buffer.from(whole.blob ?? '', 'base64').length).toBe(8_000_000)
  })

  test('BM12: the server decodes no image', async () => {
    for (const wire of two())
      for (const name of ['large.png', 'frames.gif']) {
        const { blob = '' } = partOf(await arena.read(wire, inBombs(name)))
        expect(Buffer.from(blob, 'base64').length).toBeLessThan(20_000)
      }
  })

  test('BM13, BM14, BM17: Markdown and CSV are served as text, unparsed', async () => {
    const wire = arena.wire('http 2025-11-25')
    for (const [name, text] of Object.entries(textBombs)) {
      const part = partOf(await arena.read(wire, inBombs(name)))
      // A zero byte makes it no text, and not another one.
      expect(part.text ?? Buffer.from(part.blob ?? '', 'base64').toString()).toBe(text)
      const { message, raw } = await arena.read(wire, `${inBombs(name)}?lines=1-2`)
      expect(message?.error?.code ?? -32602, raw.subarray(0, 300).toString()).toBe(-32602)
    }
  })

  test('BM13, BM17: titles from Markdown and CSV keep to the maximum length of a title in lists', async () => {
    for (const wire of two()) {
      const { message } = await arena.ask(wire, 'resources/directory/read', { uri: `${arena.world.address}/bombs` })
      const resources = (message?.result?.resources ?? []) as readonly {
        readonly uri: string
        readonly title?: string
      }[]
      for (const name of Object.keys(textBombs)) expect(resources.map(({ uri }) => uri)).toContain(inBombs(name))
      for (const { title = '' } of resources) expect(Array.from(title).length).toBeLessThanOrEqual(200)
    }
  })
})

describe('git histories', () => {
  test('BM18: a diff of two unrelated texts of ten megabytes stays within the limits', async () => {
    const folder = createGitFolder()
    const repository = folder.repository('repository')
    const lines = () => (randomBytes(5_000_000).toString('hex').match(/.{40}/g) ?? []).join('\n')
    for (const tag of ['one', 'two']) {
      repository.write('lines.txt', lines())
      repository.commit(tag)
      repository.git('tag', tag)
    }
    const provider = await git({ repository: repository.dir })
    const outcome = async (path: string) => {
      try {
        const [content] = await provider.read({ path, params: new Map() }, context())
        return content !== undefined && 'text' in content ? content.text.length : 0
      } catch (error) {
        if (isResourceError(error, 'too-large')) return 0
        throw error
      }
    }
    for (const path of ['diff/one/two', 'commits/two', 'blame/two/lines.txt', 'log'])
      expect(await outcome(path), path).toBeLessThan(16 * 1024 * 1024)
    await provider.close?.()
    folder.dispose()
  })
})
