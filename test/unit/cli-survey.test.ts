import { rmSync } from 'node:fs'
import iconv from 'iconv-lite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { surveyForInit } from '../../src/cli/operations/survey.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
beforeEach(() => {
  folder = createFolder()
})
afterEach(() => folder.remove())

const sentence = '# 設計書\n\nこれは日本語の文書です。漢字とかなが混ざっています。\n'

test('the survey of a folder of plain notes finds no repository, settings, prompts, skills or databases', async () => {
  folder.write({ 'a.md': '# A\n', 'b/c.md': '# C\n', 'hikidashi.json': '{}' })
  expect(await surveyForInit(folder.root)).toEqual({
    names: expect.arrayContaining(['a.md', 'b', 'hikidashi.json']),
    git: false,
    settings: false,
    dotenv: false,
    translations: false,
    frontMatter: false,
    prompts: [],
    skills: [],
    sqlite: [],
  })
})

test('the survey of a folder finds SQLite databases by their content, except a store of hikidashi', async () => {
  const header = (owner: string) =>
    Buffer.from(`SQLite format 3\0${'\0'.repeat(52)}${owner}${'\0'.repeat(28)}`, 'latin1')
  folder.write({ 'app.db': header('\0\0\0\0'), 'data/b.sqlite3': header('GPKG'), 'store.sqlite': header('hiki') })
  folder.write({ 'notes.db': 'text', 'c.txt': header('\0\0\0\0'), 'node_modules/x/a.db': header('\0\0\0\0') })
  expect(await surveyForInit(folder.root)).toMatchObject({ sqlite: ['app.db', 'data/b.sqlite3'] })
})

test('the survey of a folder finds the usual folders of prompts, if there is a prompt in them', async () => {
  folder.write({ 'prompts/README.md': '', '.github/prompts/a.prompt.md': 'x', '.claude/commands/b.md': 'x' })
  expect(await surveyForInit(folder.root)).toMatchObject({ prompts: ['.github/prompts', '.claude/commands'] })
})

test.each(['package.json', 'tsconfig.json', 'compose.yaml', 'pyproject.toml', '.env', 'setup.cfg'])(
  'the survey of a folder takes %s as a settings file',
  async (name) => {
    folder.write({ [name]: '' })
    expect(await surveyForInit(folder.root)).toMatchObject({ settings: true })
  },
)

test.each(['server.pem', 'package-lock.json', 'main.ts'])(
  'the survey of a folder does not take %s as a settings file',
  async (name) => {
    folder.write({ [name]: '' })
    expect(await surveyForInit(folder.root)).toMatchObject({ settings: false })
  },
)

test('the survey of a folder detects languages from texts in older encodings', async () => {
  folder.write({ 'docs/設計.md': iconv.encode(sentence.repeat(3), 'shift_jis') })
  expect(await surveyForInit(folder.root)).toMatchObject({ language: 'ja' })
  folder.write({ 'docs/ko.txt': iconv.encode('안녕하세요. 이 문서는 한국어로 쓰여 있습니다. '.repeat(5), 'euc-kr') })
  expect(await surveyForInit(folder.root)).toMatchObject({ language: ['ja', 'ko'] })
})

test('the survey of a folder finds translations and front matter, and skips excluded folders', async () => {
  folder.write({
    'node_modules/x/README.md': '',
    'node_modules/x/README.ja.md': '',
    '.git/en/a.md': '---\ntitle: x\n---\n',
  })
  expect(await surveyForInit(folder.root)).toMatchObject({ translations: false, frontMatter: false })
  folder.write({ 'docs/en/a.md': '---\ntitle: x\n---\n', 'docs/ja/a.md': '' })
  expect(await surveyForInit(folder.root)).toMatchObject({ translations: true, frontMatter: true })
})

test('the survey of a folder takes .env as a file of variables, and not the Python environment', async () => {
  folder.write({ '.env': 'A=1\n' })
  expect(await surveyForInit(folder.root)).toMatchObject({ dotenv: true })
  rmSync(folder.at('.env'))
  folder.write({ '.env/pyvenv.cfg': '' })
  expect(await surveyForInit(folder.root)).toMatchObject({ dotenv: false })
})

test('the survey of a folder finds the base URL of an API in its description, with its GET routes', async () => {
  const get = (more = {}) => ({ get: { parameters: [{ in: 'path', name: 'id', required: true }], ...more } })
  const paths = {
    '/users': get(),
    '/users/{id}': get({ parameters: [{ in: 'query', name: 'fields' }] }),
    '/search': get({ parameters: [{ in: 'query', name: 'q', required: true }] }),
    '/orders': { post: {} },
    '/odd/{a}{b}': get(),
  }
  folder.write({ 'docs/openapi.json': JSON.stringify({ servers: [{ url: 'https://api.example.org/v1/' }], paths }) })
  expect(await surveyForInit(folder.root)).toMatchObject({
    api: { file: 'docs/openapi.json', url: 'https://api.example.org/v1', templates: ['users', 'users/{id}'] },
  })
  for (const text of [
    '{',
    '[]',
    '{"servers":[{"url":"/v1"}],"paths":{"/a":{"get":{}}}}',
    '{"servers":[{"url":"http://x"}]}',
  ]) {
    folder.write({ 'docs/openapi.json': text })
    expect(await surveyForInit(folder.root)).not.toHaveProperty('api')
  }
})
