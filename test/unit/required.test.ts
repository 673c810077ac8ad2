import { expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { assemble } from '../../src/context/index.ts'
import { createCatalog } from '../../src/index.ts'
import { files } from '../../src/providers/files/index.ts'
import { git } from '../../src/providers/git/index.ts'
import { sqlite } from '../../src/providers/sqlite/index.ts'
import { serveHttp, serveStdio } from '../../src/server/index.ts'

/** As a program in JavaScript calls it. */
const called = (act: unknown, ...given: readonly unknown[]) =>
  (async () => (act as (...all: readonly unknown[]) => unknown)(...given))()

test.each([
  [createCatalog, [], 'createCatalog({ mounts }) needs "mounts", an array: it is missing.'],
  [createCatalog, [{ mounts: [{ provider: {} }] }], 'A mount of createCatalog needs "address", a text: it is missing.'],
  [
    createCatalog,
    [{ mounts: [{ address: 'a://b', provider: { list() {} } }] }],
    'The provider at a://b needs "read", a function: it is missing.',
  ],
  [files, [], 'files({ root }) needs "root", a text: it is missing.'],
  [files, [{ root: 3 }], 'files({ root }) needs "root", a text: it is of the type number.'],
  [git, [{}], 'git({ repository }) needs "repository", a text: it is missing.'],
  [sqlite, [{ file: null }], 'sqlite({ file }) needs "file", a text: it is null.'],
  [connect, [], 'connect({ command }) or connect({ url }) needs "command", a text: it is missing.'],
  [connect, [{ url: 1 }], 'connect({ url }) needs "url", a text: it is of the type number.'],
  [assemble, [], 'The view of assemble(view, options) needs "list", a function: it is missing.'],
  [serveStdio, [{}], 'serveStdio({ name, version, view }) needs "name", a text: it is missing.'],
  [
    serveHttp,
    [{ name: 'a', version: '1' }],
    'serveHttp({ name, version, view, host, port }) needs "view", a function: it is missing.',
  ],
])('wrong input to a public function is named in a sentence: %o %j', async (act, given, message) => {
  await expect(called(act, ...given)).rejects.toMatchObject({ kind: 'invalid', message })
})
