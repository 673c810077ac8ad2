import { expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { assemble } from '../../src/context/index.ts'
import { compileAccess, compileTemplate, createCatalog, fileAddress } from '../../src/index.ts'
import { api } from '../../src/providers/api/index.ts'
import { files } from '../../src/providers/files/index.ts'
import { gcs } from '../../src/providers/gcs/index.ts'
import { gdrive } from '../../src/providers/gdrive/index.ts'
import { git } from '../../src/providers/git/index.ts'
import { inline } from '../../src/providers/inline/index.ts'
import { metrics } from '../../src/providers/metrics/index.ts'
import { mysql } from '../../src/providers/mysql/index.ts'
import { packages } from '../../src/providers/packages/index.ts'
import { postgres } from '../../src/providers/postgres/index.ts'
import { prompts } from '../../src/providers/prompts/index.ts'
import { remote } from '../../src/providers/remote/index.ts'
import { results } from '../../src/providers/results/index.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { search } from '../../src/providers/search/index.ts'
import { settings } from '../../src/providers/settings/index.ts'
import { sqlite } from '../../src/providers/sqlite/index.ts'
import { web } from '../../src/providers/web/index.ts'
import { serveHttp, serveStdio } from '../../src/server/index.ts'
import { checkProvider } from '../../src/testing/index.ts'
import { limited } from '../../src/wrap/limited.ts'
import { sliced } from '../../src/wrap/sliced.ts'

/** As a program in JavaScript calls it. */
const called = (act: unknown, ...given: readonly unknown[]) =>
  (async () => (act as (...all: readonly unknown[]) => unknown)(...given))()

const wrong: readonly (readonly [act: unknown, given: readonly unknown[], message: string])[] = [
  [createCatalog, [], 'createCatalog({ mounts }) needs "mounts", an array: it is missing.'],
  [
    createCatalog,
    [{ mounts: [{ provider: {} }] }],
    'A mount of createCatalog needs "address", a string: it is missing.',
  ],
  [
    createCatalog,
    [{ mounts: [{ address: 'a://b', provider: { list() {} } }] }],
    'The provider at a://b needs "read", a function: it is missing.',
  ],
  [
    createCatalog,
    [{ mounts: [{ address: 'a://b', provider: Promise.resolve({}) }] }],
    'The provider at a://b is a promise: await it.',
  ],
  [
    createCatalog,
    [{ mounts: [{ address: 'a://b', provider: { list() {}, read() {} }, access: [{ allow: ['a'] }] }] }],
    'A mount of createCatalog needs "access", a function: it is of the type object.',
  ],
  [createCatalog({ mounts: [] }).view({ id: 'a', roles: [] }).read, [7], 'A URI must be a string.'],
  [files, [], 'files({ root }) needs "root", a string: it is missing.'],
  [files, [{ root: 3 }], 'files({ root }) needs "root", a string: it is of the type number.'],
  [git, [{}], 'git({ repository }) needs "repository", a string: it is missing.'],
  [sqlite, [{ file: null }], 'sqlite({ file }) needs "file", a string: it is null.'],
  [connect, [], 'connect({ command }) or connect({ url }) needs "command", a string: it is missing.'],
  [connect, [{ url: 1 }], 'connect({ url }) needs "url", a string: it is of the type number.'],
  [assemble, [], 'The view of assemble(view, options) needs "list", a function: it is missing.'],
  [
    serveStdio,
    [{ name: 'a', version: '1', view() {} }],
    'serveStdio({ name, version, view, log }) needs "log", a function: it is missing.',
  ],
  [serveStdio, [{}], 'serveStdio({ name, version, view, log }) needs "name", a string: it is missing.'],
  [
    serveHttp,
    [{ name: 'a', version: '1' }],
    'serveHttp({ name, version, view, log, host, port }) needs "view", a function: it is missing.',
  ],
  [api, [{ url: 'https://a.example' }], 'api({ url, routes }) needs "routes", an array: it is missing.'],
  [gcs, [{}], 'gcs({ bucket }) needs "bucket", a string: it is missing.'],
  [gdrive, [{}], 'gdrive({ credentials }) needs "credentials", an object: it is missing.'],
  [inline, [], 'inline({ resources }) needs "resources", an object: it is missing.'],
  [metrics, [], 'metrics(options) needs "options", an object: it is missing.'],
  [mysql, [{ url: 1 }], 'mysql({ url }) needs "url", a string: it is of the type number.'],
  [packages, [], 'packages({ root }) needs "root", a string: it is missing.'],
  [postgres, [{}], 'postgres({ url }) needs "url", a string: it is missing.'],
  [prompts, [{}], 'prompts({ source }) needs "source", an object: it is missing.'],
  [remote, [{}], 'remote({ target }) needs "target", an object: it is missing.'],
  [results, [{}], 'results({ store }) needs "store", an object: it is missing.'],
  [s3, [{}], 's3({ bucket }) needs "bucket", a string: it is missing.'],
  [search, [{}], 'search({ index, store, name, mounts }) needs "index", an object: it is missing.'],
  [settings, [], 'settings({ source }) needs "source", an object: it is missing.'],
  [web, [{}], 'web({ url }) needs "url", a string: it is missing.'],
  [limited, [], 'The provider of limited(provider, options) needs "list", a function: it is missing.'],
  [sliced, [{ list() {} }], 'The provider of sliced(provider, options) needs "read", a function: it is missing.'],
  [
    checkProvider,
    [null],
    'The provider of checkProvider(provider, expectation, options) needs "list", a function: it is missing.',
  ],
  [compileTemplate, [7], 'compileTemplate(text) needs "text", a string: it is of the type number.'],
  [compileAccess, [], 'compileAccess(rules) needs "rules", an array: it is missing.'],
  [compileAccess, [['admin']], 'compileAccess(rules) needs "a rule", an object: it is of the type string.'],
  [
    compileAccess,
    [[{ deny: 'guest' }]],
    'A rule of compileAccess(rules) needs "deny", an array: it is of the type string.',
  ],
  [
    compileAccess,
    [[{ dney: ['guest'] }]],
    'A rule of compileAccess(rules) has the key "dney". Its keys are allow, deny and match.',
  ],
  [fileAddress, [], 'fileAddress(absolutePath) needs "absolutePath", a string: it is missing.'],
]

test.each(wrong.map(([act, given, message]) => [message, act, given] as const))(
  'wrong input to a public function gives the error "%s"',
  async (message, act, given) => {
    await expect(called(act, ...given)).rejects.toMatchObject({ kind: 'invalid', message })
  },
)
