import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type MountedCatalog, openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig, searchesOf } from '../../src/config/plan.ts'
import { createProfileFinder } from '../../src/config/profiles.ts'
import { createAssembleTool } from '../../src/context/tool.ts'
import { openViewChannel } from '../../src/server/serve.ts'
import { createGitFolder, type GitFolder } from '../support/git.ts'
import { leaks, password, tokens } from '../support/secrets.ts'
import { meta } from './harness/wire.ts'

// Each form of a secret, on each way that a text leaves a folder and a repository that are searched for secrets.

const token = tokens()[2]?.planted ?? ''
const secret = password().planted
const der = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'der' })
const wrapped = der.toString('base64').match(/.{1,24}/g) ?? []
/** A word of each text, by which it is found and packed. */
const word = 'zebrafish'
const filler = `A line about the ${word}.\n`.repeat(40)

const forms: Readonly<
  Record<string, { readonly file: string; readonly text: string; readonly secrets: readonly string[] }>
> = {
  'in a heading': { file: 'heading.md', text: `# The ${word} ${token}\n\n${filler}`, secrets: [token] },
  'in the first and last line': { file: 'ends.txt', text: `${token}\n${filler}${token}\n`, secrets: [token] },
  'in a cell': {
    file: 'cells.csv',
    text: `user,password,note\n${`u,${secret},${word}\n`.repeat(60)}`,
    secrets: [secret],
  },
  'in a cell of Markdown': {
    file: 'cells.md',
    text: `# A ${word}\n\n| user | password |\n|---|---|\n${`| u | ${secret} |\n`.repeat(30)}`,
    secrets: [secret],
  },
  'folded in YAML': {
    file: 'folded.yaml',
    text: `# ${word}\ndb:\n  password: >-\n    ${secret}\n    ${secret}\nx: 1\n`,
    secrets: [secret],
  },
  'in a connection string': {
    file: 'dsn.go',
    text: `// ${word}\nvar dsn = "app:${secret}@tcp(db:3306)/x"\n${filler.replace(/^/gm, '// ')}`,
    secrets: [secret],
  },
  'in an ODBC string': {
    file: 'odbc.txt',
    text: `${word}\nDriver={x};Server=db;Uid=app;Pwd={${secret}};\n${filler}`,
    secrets: [secret],
  },
  'as DER in wrapped base64': {
    file: 'key.txt',
    text: `${filler}${wrapped.join('\n')}\n${filler}`,
    secrets: wrapped.slice(1, -1),
  },
  'as the default of a reference': {
    file: 'compose.yaml',
    text: `# ${word}\nenvironment:\n  - DB_PASSWORD=\${DB_PASSWORD:-${secret}}\n`,
    secrets: [secret],
  },
  'before its name': {
    file: 'before.json',
    text: `{"about": "${word}", "env": [{"value": "${secret}", "name": "DB_PASSWORD"}]}\n`,
    secrets: [secret],
  },
  'in a row of SQL': {
    file: 'rows.sql',
    text: `-- ${word}\nINSERT INTO users (name, password) VALUES ('u', '${secret}'), ('v', '${secret}');\n`,
    secrets: [secret],
  },
}
const files = Object.values(forms)
const all = files.flatMap(({ secrets }) => secrets)

interface Wire {
  readonly [name: string]: unknown
}

describe('a secret', () => {
  let folder: GitFolder
  let state: string
  let catalog: MountedCatalog
  let ask: (method: string, params: object) => Promise<Wire>
  let ids: readonly string[]

  beforeAll(async () => {
    folder = createGitFolder()
    state = mkdtempSync(join(tmpdir(), 'hikidashi-ways-'))
    const repository = folder.repository('r')
    for (const { file } of files) repository.write(file, 'nothing yet\n')
    const first = repository.commit('first')
    for (const { file, text } of files) repository.write(file, text)
    const second = repository.commit(`the ${word} has ${token}`)
    ids = [first, second]
    const redact = 'mask'
    const mounts = {
      'file:///r': { provider: 'files', root: repository.dir, redact },
      'git://r': { provider: 'git', repository: repository.dir, redact },
      'search://all': { provider: 'search', over: '*' },
    }
    const config = join(state, 'hikidashi.json')
    writeFileSync(config, JSON.stringify({ mounts, store: { sqlite: './store.sqlite' } }))
    const loaded = await loadConfig(config)
    if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems))
    catalog = await openCatalog(planConfig(loaded.config), { log: () => {}, store: loaded.config.store })
    for (const { provider } of searchesOf(catalog)) provider.feed()
    const channel = await openViewChannel(
      {
        ...{ name: 'x', version: '1', view: catalog.view, log: () => {} },
        profileOf: createProfileFinder({ tools: 'on', profiles: [] }, catalog),
        readingTools: (view) => [createAssembleTool(view)],
      },
      { id: 'ada', roles: [] },
      'modern',
    )
    ask = async (method, params) =>
      (await channel.request({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } })) as unknown as Wire
  })
  afterAll(async () => {
    await catalog?.close()
    folder?.dispose()
    rmSync(state, { recursive: true, force: true })
  })

  const read = async (uri: string) => JSON.stringify(await ask('resources/read', { uri }))
  const call = async (name: string, given: object) =>
    JSON.stringify(await ask('tools/call', { name, arguments: given }))

  /** What each way gives of a file. Every one of them must show something. */
  const ways: Readonly<Record<string, (file: string, lines: number, bytes: number) => readonly Promise<string>[]>> = {
    'the whole': (file) => [read(`file:///r/${file}`)],
    'each line': (file, lines) =>
      Array.from({ length: lines }, (_, n) => read(`file:///r/${file}?lines=${n + 1}-${n + 1}`)),
    'lines from the middle': (file, lines) => [
      read(`file:///r/${file}?lines=${Math.ceil(lines / 2)}-`),
      read(`file:///r/${file}?lines=2-${lines}`),
    ],
    'ranges of bytes': (file, _, bytes) =>
      Array.from({ length: 24 }, (_, n) => Math.floor((n * bytes) / 24)).flatMap((at) => [
        read(`file:///r/${file}?bytes=${at}-${at + 40}`),
        read(`file:///r/${file}?bytes=0-${at}`),
      ]),
    'the last lines': (file, lines) =>
      [1, 2, 3, Math.ceil(lines / 2), lines].map((count) => read(`file:///r/${file}?tail=${count}`)),
    'a reading': (file) => [read(`file:///r/${file}?as=text`), read(`file:///r/${file}?as=markdown`)],
    'the tool that reads, with its outline': (file) => [
      call('read_resource', { uri: `file:///r/${file}` }),
      call('read_resource', { uri: `file:///r/${file}`, maxTokens: 100 }),
    ],
    'a file at a commit': (file) => [
      read(`git://r/${ids[1]}/${file}`),
      read(`git://r/HEAD/${file}?lines=2-3`),
      read(`git://r/HEAD/${file}?tail=2`),
    ],
    'the changes of one file': (file) => [read(`git://r/diff/${ids[0]}/${ids[1]}?path=${file}`)],
    'a blame': (file, lines) => [
      read(`git://r/blame/HEAD/${file}`),
      read(`git://r/blame/HEAD/${file}?lines=3-${lines + 2}`),
    ],
  }

  test.each(Object.entries(forms))(
    '%s is disclosed by no read, range, conversion, outline, diff or blame of its file (SE22)',
    async (_, { file, text, secrets }) => {
      const lines = text.split('\n').length - 1
      for (const [way, make] of Object.entries(ways)) {
        const answers = await Promise.all(make(file, lines, Buffer.byteLength(text)))
        for (const answer of answers) expect(leaks(answer, secrets), `${way}: ${answer.slice(0, 2000)}`).toEqual([])
        expect(
          answers.some((answer) => answer.includes('"result"')),
          `${way}: ${answers[0]}`,
        ).toBe(true)
      }
    },
  )

  test('of any file is in no patch, commit, list, search or context (SE22)', async () => {
    await expect.poll(() => call('search_resources', { query: word, limit: 50 })).toContain('rows.sql')
    const answers: Readonly<Record<string, string>> = {
      patch: await read(`git://r/diff/${ids[0]}/${ids[1]}`),
      commit: await read(`git://r/commits/${ids[1]}`),
      'part of a commit': await read(`git://r/commits/${ids[1]}?lines=10-60`),
      commits: await read('git://r/log'),
      list: JSON.stringify(await ask('resources/list', {})),
      search: await call('search_resources', { query: word, limit: 50 }),
      'search of a name': await call('search_resources', { query: 'password', limit: 50 }),
      context: await call('assemble_context', { query: `What of the ${word}?`, budget: 20_000 }),
      'small context': await call('assemble_context', { query: `Which password has the ${word}?`, budget: 800 }),
    }
    for (const [way, answer] of Object.entries(answers)) {
      expect(answer, way).toContain('"result"')
      expect(leaks(answer, all), `${way}: ${answer.slice(0, 3000)}`).toEqual([])
    }
    expect(answers.search).toContain('heading.md')
    expect(answers.context).toContain(word)
    // A search for a secret itself finds nothing by it.
    const found = await call('search_resources', { query: `"${token}"` })
    expect(leaks(found.replaceAll(token, ''), all)).toEqual([])
    expect(found).not.toContain('heading.md')
  })
})
