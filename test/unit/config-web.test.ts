import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openCatalog } from '../../src/config/build.ts'
import { loadConfig } from '../../src/config/load.ts'
import { planConfig } from '../../src/config/plan.ts'
import { startWeb, watchConnections } from '../support/web.ts'

let folder: string
const connections = watchConnections()
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hikidashi-web-'))
})
afterEach(() => vi.unstubAllEnvs())
afterAll(async () => {
  connections.end()
  await rm(folder, { recursive: true })
  expect(connections.left).toEqual([])
})

const load = async (mounts: unknown) => {
  const file = join(folder, 'hikidashi.json')
  await writeFile(file, JSON.stringify({ mounts }, null, 1))
  return loadConfig(file)
}
const open = async (mounts: unknown) => {
  const found = await load(mounts)
  if ('problems' in found) throw new Error(JSON.stringify(found.problems))
  return openCatalog(planConfig(found.config), { log: () => {} })
}

const web = (more: object) => ({
  'web://x': { provider: 'web', url: 'https://www.example.org', pages: ['a'], ...more },
})
const api = (more: object) => ({
  'api://x': { provider: 'api', url: 'https://api.example.org', routes: [{ template: 'users/{id}' }], ...more },
})

describe('an error in a configuration of web and api mounts is reported with its line:', () => {
  test.each([
    [{ 'web://x': { provider: 'web', pages: ['a'] } }, 3, 'its address is not an http or https URL'],
    [
      { 'https://www.example.org': { provider: 'web' } },
      3,
      'The mount has none of "pages", "match" and "llms", so it serves no page.',
    ],
    [web({ url: 'https://127.1' }), 5, 'This is not an http or https URL.'],
    [web({ url: 'https://u:p@example.org' }), 5, 'This is not an http or https URL.'],
    [web({ pages: ['a', '/b'] }), 8, 'This is not the path of a page.'],
    [web({ pages: [{ path: 'a', titel: 'A' }] }), 9, 'Did you mean "title"?'],
    [web({ allowAddresses: ['10.0.0.0/33'] }), 10, 'This is not an IP address or a block of addresses.'],
    [web({ redirects: ['www.example.org'] }), 10, 'This is not an http or https URL.'],
    [web({ types: ['html'] }), 10, 'This is not a media type.'],
    [web({ maxBytes: '1GiB' }), 9, 'larger than can be read at once'],
    [api({ routes: [] }), 6, 'The value is empty.'],
    [api({ routes: [{ template: 'users/{+id}' }] }), 8, 'The route "users/{+id}" is not valid'],
    [api({ routes: [{ template: 'a/{b}', list: { from: 'a', items: 'x' } }] }), 11, 'This is not a JSON pointer.'],
    [
      api({ routes: [{ template: 'a/{b}', list: { from: 'a', next: 'links' } }] }),
      11,
      'not a way to find the next page',
    ],
    [api({ bearer: 'abcdef' }), 11, 'This is a literal secret.'],
    [api({ headers: { 'X-Api-Key': 'abcdef' } }), 12, 'This is a literal secret.'],
    [api({ headers: { Authorization: 'Basic abcdef' } }), 12, 'This is a literal secret.'],
    [api({ headers: { Host: 'evil' } }), 12, 'A configuration cannot set this header.'],
    [api({ headers: { 'X-Team\r\nHost': 'evil' } }), 12, 'not the name of a header'],
    [api({ headers: { 'X-Team': 'a\r\nHost: evil' } }), 12, 'only printable ASCII'],
  ])('%j at line %i, with the message or advice "%s"', async (mounts, line, message) => {
    const found = await load(mounts)
    const problems = 'problems' in found ? found.problems : []
    const texts = problems.map((problem) => `${problem.line}: ${problem.message} ${problem.fix}`)
    expect(
      texts.some((text) => text.startsWith(`${line}: `) && text.includes(message)),
      texts.join('\n'),
    ).toBe(true)
    expect(texts.join()).not.toContain('abcdef')
  })
})

test.each([
  [
    web({ url: 'https://10.0.0.1' }),
    /cannot be requested: its host resolves to an address outside the public internet/,
  ],
  [web({ url: 'http://www.example.org' }), /is not encrypted/],
  [web({ pages: [], match: '**', poll: '5m' }), /no pages to poll.*Remove "poll"/],
  [web({ fetch: false, poll: '5m' }), /Remove "poll"/],
  [web({ redact: 'mask', pages: ['a', 'a'] }), /has a page twice/],
  [api({ bearer: { env: 'NOT_SET' } }), /"bearer" has no value/],
  [api({ bearer: { env: 'LINES' } }), /"bearer" contains a line end/],
  [api({ headers: { 'X-Api-Key': { env: 'NOT_SET' } } }), /"headers\.X-Api-Key" has no value/],
])('the web or api mount %j is refused when it is opened', async (mounts, message) => {
  vi.stubEnv('LINES', 'a\r\nHost: evil')
  await expect(open(mounts)).rejects.toThrow(message)
})

test('an api mount with credentials is refused at an http:// address of another machine, unless it is marked insecure', async () => {
  vi.stubEnv('TOKEN', 'a-token-of-the-api')
  const mount = { url: 'http://api.example.org', bearer: { env: 'TOKEN' } }
  await expect(open(api(mount))).rejects.toThrow(/without encryption/)
  await (await open(api({ ...mount, insecure: true }))).close()
})

test('web and api mounts redact their contents, and a web mount at an https:// address lists its pages there', async () => {
  const origin = await startWeb((request, response) =>
    response
      .writeHead(200, { 'content-type': request.url === '/me' ? 'application/json' : 'text/plain' })
      .end(request.url === '/me' ? '{"password":"hunter2hunter2"}' : 'password = "hunter2hunter2"'),
  )
  const asked = { url: origin.url, allowAddresses: ['127.0.0.1'], redact: 'mask' }
  const catalog = await open({
    'https://www.example.org': { provider: 'web', pages: ['a'] },
    ...web({ ...asked, match: ['docs/**'] }),
    ...api({ ...asked, routes: [{ template: 'me' }] }),
  })
  const view = catalog.view({ id: 'x', roles: [] })
  expect((await view.list({})).items.map(({ uri }) => uri)).toEqual(['https://www.example.org/a', 'web://x/a'])
  for (const uri of ['web://x/a', 'api://x/me']) {
    const text = JSON.stringify((await view.read(uri)).contents)
    expect(text).toContain('[redacted]')
    expect(text).not.toContain('hunter2')
  }
  await catalog.close()
  origin.close()
})
