import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { printNewestVersion, registryUrlIn } from '../../src/cli/operations/newest.ts'

let answer: { readonly status: number; readonly body: string }
const asked: (string | undefined)[] = []
const registry = createServer((request, response) => {
  asked.push(request.url)
  response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(answer.body)
})
let url = ''
beforeAll(async () => {
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/npm/`
})
afterAll(() => void registry.close())

async function check(given: typeof answer, installed: object = {}) {
  answer = given
  const written: string[] = []
  const said: string[] = []
  const out = { isTerminal: false, write: async (data: string | Uint8Array) => void written.push(String(data)) }
  await printNewestVersion(
    { version: '0.2.0', isPublished: true, registry: url, ...installed },
    { out, say: (one) => said.push(one) },
  )
  return { printed: written.join(''), said: said.join('\n') }
}
const newest = (version: unknown) => ({ status: 200, body: JSON.stringify({ name: 'hikidashi', version }) })

describe('the newest version of hikidashi', () => {
  test.each<[string, RegExp]>([
    ['0.10.0', /^Version 0\.10\.0 is published\. .*hikidashi@0\.10\.0$/],
    ['0.2.0', /^No newer version is published \(newest: 0\.2\.0\)/],
    ['0.1.9', /^No newer version/],
    ['0.2.0-beta.1', /^No newer version/],
  ])('is requested from the registry and compared with this version: %s', async (version, said) => {
    const checked = await check(newest(version))
    expect(checked.printed).toBe('0.2.0\n')
    expect(checked.said).toMatch(said)
    expect(asked.at(-1)).toBe('/npm/hikidashi/latest')
  })

  test('is not requested by an unpublished build', async () => {
    const before = asked.length
    expect((await check(newest('9.0.0'), { isPublished: false })).said).toMatch(/not published yet/)
    expect(asked.length).toBe(before)
  })

  test('is unknown, with the reason, if the registry does not answer, refuses, or is not a registry', async () => {
    expect((await check({ status: 404, body: '{}' })).said).toMatch(/has no package hikidashi/)
    await expect(check({ status: 503, body: '' })).rejects.toThrow(/answers 503: the newest version is not known/)
    for (const body of ['<html>', '{}', JSON.stringify({ version: '1; rm -rf' }), JSON.stringify('x'.repeat(2e6))])
      await expect(check({ status: 200, body })).rejects.toThrow(/does not answer as a registry/)
    await expect(check(newest('1.0.0'), { registry: 'http://127.0.0.1:1/' })).rejects.toThrow(/Are you offline/)
    await expect(check(newest('1.0.0'), { registry: 'registry' })).rejects.toThrow(/not an http or https URL/)
  })

  test('is requested from the registry that npm uses', () => {
    expect(registryUrlIn({})).toBe('https://registry.npmjs.org/')
    expect(registryUrlIn({ npm_config_registry: 'https://npm.example/' })).toBe('https://npm.example/')
  })
})
