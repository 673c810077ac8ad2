import { rmSync } from 'node:fs'
import iconv from 'iconv-lite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { surveyFolder } from '../../src/cli/survey.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
beforeEach(() => {
  folder = createFolder()
})
afterEach(() => folder.remove())

const sentence = '# 設計書\n\nこれは日本語の文書です。漢字とかなが混ざっています。\n'

test('a folder of plain notes has nothing special', async () => {
  folder.write({ 'a.md': '# A\n', 'b/c.md': '# C\n', 'hikidashi.json': '{}' })
  expect(await surveyFolder(folder.root)).toEqual({
    names: expect.arrayContaining(['a.md', 'b', 'hikidashi.json']),
    settings: false,
    dotenv: false,
    twins: false,
    frontMatter: false,
  })
})

test.each(['package.json', 'tsconfig.json', 'compose.yaml', 'pyproject.toml', '.env', 'setup.cfg'])(
  '%s is a file of settings',
  async (name) => {
    folder.write({ [name]: '' })
    expect(await surveyFolder(folder.root)).toMatchObject({ settings: true })
  },
)

test.each(['server.pem', 'package-lock.json', 'main.ts'])('%s is none', async (name) => {
  folder.write({ [name]: '' })
  expect(await surveyFolder(folder.root)).toMatchObject({ settings: false })
})

test('texts in an older encoding tell the language, unless there are several', async () => {
  folder.write({ 'docs/設計.md': iconv.encode(sentence.repeat(3), 'shift_jis') })
  expect(await surveyFolder(folder.root)).toMatchObject({ language: 'ja' })
  folder.write({ 'docs/ko.txt': iconv.encode('안녕하세요. 이 문서는 한국어로 쓰여 있습니다. '.repeat(5), 'euc-kr') })
  expect(await surveyFolder(folder.root)).not.toHaveProperty('language')
})

test('twins and front matter are seen, and folders that are left out are not looked into', async () => {
  folder.write({
    'node_modules/x/README.md': '',
    'node_modules/x/README.ja.md': '',
    '.git/en/a.md': '---\ntitle: x\n---\n',
  })
  expect(await surveyFolder(folder.root)).toMatchObject({ twins: false, frontMatter: false })
  folder.write({ 'docs/en/a.md': '---\ntitle: x\n---\n', 'docs/ja/a.md': '' })
  expect(await surveyFolder(folder.root)).toMatchObject({ twins: true, frontMatter: true })
})

test('.env is a file of variables, and not an environment of Python', async () => {
  folder.write({ '.env': 'A=1\n' })
  expect(await surveyFolder(folder.root)).toMatchObject({ dotenv: true })
  rmSync(folder.at('.env'))
  folder.write({ '.env/pyvenv.cfg': '' })
  expect(await surveyFolder(folder.root)).toMatchObject({ dotenv: false })
})
