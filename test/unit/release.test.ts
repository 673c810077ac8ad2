import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { npxServer, textArtefacts } from '../../scripts/release/artefacts.ts'
import {
  checkButtons,
  checkCatalog,
  checkFormula,
  checkMarketplace,
  checkServerJson,
} from '../../scripts/release/checks.ts'
import { factsOf, type Manifest, publishedManifest, readManifest } from '../../scripts/release/facts.ts'

const root = join(import.meta.dirname, '../..')
const commit = '0123456789abcdef0123456789abcdef01234567'
const sha256 = 'ab'.repeat(32)
const manifest: Manifest = { ...readManifest(root), repository: 'git+https://github.com/someone/drawers.git' }
const facts = factsOf(manifest, commit)
const texts = textArtefacts(root, facts, sha256)
const text = (path: string) => texts[path] ?? expect.fail(`no ${path}`)

describe('a release', () => {
  test.each([
    'git+https://github.com/someone/drawers.git',
    'https://github.com/someone/drawers',
    'github:someone/drawers',
    'git+ssh://git@github.com/someone/drawers.git',
  ])('has its owner from "repository" of package.json: %s', (repository) => {
    for (const written of [repository, { type: 'git', url: repository }])
      expect(factsOf({ ...manifest, repository: written }, commit)).toMatchObject({
        owner: { account: 'someone', repository: 'drawers' },
        isOwned: true,
      })
  })

  test('has a placeholder if package.json names no owner, and refuses a repository outside of GitHub', () => {
    const { repository: _, ...without } = manifest
    expect(factsOf(without as Manifest, commit)).toMatchObject({ owner: { account: 'OWNER' }, isOwned: false })
    expect(() => factsOf({ ...manifest, repository: 'https://git.example.org/a/b' }, commit)).toThrow(/on GitHub/)
  })

  test('publishes a package.json with the addresses, and without what only a clone needs', () => {
    const published = publishedManifest(facts)
    expect(published).toMatchObject({
      repository: { type: 'git', url: 'git+https://github.com/someone/drawers.git' },
      homepage: 'https://github.com/someone/drawers#readme',
      bugs: { url: 'https://github.com/someone/drawers/issues' },
      mcpName: 'io.github.someone/hikidashi',
      bin: manifest.bin,
    })
    for (const key of ['private', 'scripts', 'devDependencies']) expect(published).not.toHaveProperty(key)
  })

  test('names its owner in every text that has an address, and leaves a placeholder in no text', () => {
    for (const [path, written] of Object.entries(texts)) {
      expect(written, path).not.toContain('OWNER')
      if (!/tools\.json|buttons/.test(path)) expect(written, path).toMatch(/someone\/drawers/)
    }
  })

  test('passes the checks of each registry, and a wrong release is refused by them', () => {
    const server = text('server.json')
    const published = publishedManifest(facts)
    expect(checkServerJson(root, server, published).faults).toEqual([])
    expect(checkServerJson(root, server.replace(facts.manifest.version, '9.9.9'), published).faults).not.toEqual([])

    const [entry, tools] = [text('docker-catalog/server.yaml'), text('docker-catalog/tools.json')]
    expect(checkCatalog(entry, tools).faults).toEqual([])
    expect(parse(entry).source).toEqual({ project: 'https://github.com/someone/drawers', commit })
    expect(
      checkCatalog(entry.replace('Hikidashi', 'hikidashi MCP').replaceAll(commit, 'main'), tools).faults,
    ).toHaveLength(3)
    expect(checkCatalog(entry, tools.replace(/"desc": "[^"]+"/, '"desc": ""')).faults).toHaveLength(1)

    expect(checkButtons(text('buttons.md'), npxServer(facts)).faults).toEqual([])
    expect(checkButtons(text('buttons.md'), { command: 'other' }).faults).toHaveLength(1)

    const ruby = text('homebrew/hikidashi.rb')
    expect(checkFormula(ruby, 'none.rb').faults.filter((fault) => !fault.includes('none.rb'))).toEqual([])
    expect(
      checkFormula(ruby.replace(sha256, '').replace('desc "S', 'desc "A s'), 'none.rb').faults.length,
    ).toBeGreaterThan(1)

    const marketplace = text('claude-plugin/marketplace.json')
    expect(checkMarketplace(root, marketplace, facts.manifest).faults).toEqual([])
    expect(checkMarketplace(root, marketplace, { ...facts.manifest, version: '9.9.9' }).faults).toHaveLength(1)
  })

  test('is called unpublished in the README exactly while package.json is private', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    expect(readme.includes('is not published yet')).toBe(readManifest(root).private === true)
  })
})
