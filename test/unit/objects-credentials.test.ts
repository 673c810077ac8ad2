import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { gcs } from '../../src/providers/gcs/index.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { createFolder, type Folder } from '../support/folder.ts'
import { type GcsStandIn, startGcs } from '../support/gcs-stand-in.ts'
import { context, listAll, readText } from '../support/object-stores.ts'
import { type S3StandIn, startS3 } from '../support/s3-stand-in.ts'

// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })

let folder: Folder
beforeEach(() => {
  folder = createFolder()
  // Nothing of the machine that this runs on.
  for (const name of [
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_SESSION_TOKEN',
    'AWS_PROFILE',
    'AWS_REGION',
    'AWS_DEFAULT_REGION',
  ])
    vi.stubEnv(name, undefined)
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', undefined)
  vi.stubEnv('HOME', folder.root)
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', folder.at('credentials'))
  vi.stubEnv('AWS_CONFIG_FILE', folder.at('config'))
})
afterEach(() => {
  vi.unstubAllEnvs()
  folder.remove()
})

describe('the credentials of s3', () => {
  let store: S3StandIn
  beforeEach(async () => {
    store = await startS3({
      keys: { accessKeyId: 'AKIDONE', secretAccessKey: 'secret-one', sessionToken: 'token-one' },
    })
    store.table.put('a.txt', 'a')
  })
  afterEach(() => store.close())

  const open = (options: Partial<Parameters<typeof s3>[0]> = {}) =>
    s3({ bucket: store.bucket, endpoint: store.url, ...options })

  test('are taken from the environment, and from the named profile', async () => {
    // The client reads the file once in a process.
    folder.write({
      credentials:
        '[reader]\naws_access_key_id = AKIDONE\naws_secret_access_key = secret-one\naws_session_token = token-one\n',
    })
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'AKIDONE')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret-one')
    vi.stubEnv('AWS_SESSION_TOKEN', 'token-one')
    expect(await readText(await open(), 'a.txt')).toBe('a')
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN']) vi.stubEnv(name, undefined)
    expect(await readText(await open({ profile: 'reader' }), 'a.txt')).toBe('a')
  })

  test.each([
    ['an unknown key', { accessKeyId: 'AKIDTWO' }, /does not know the access key/],
    ['a wrong secret', { secretAccessKey: 'secret-two' }, /does not belong to the access key/],
    ['an old token', { sessionToken: 'token-two' }, /session token/],
  ])('give an error with the cause, and never "not found", for any request: %s', async (_, wrong, words) => {
    const provider = await open({ keys: { ...store.keys, ...wrong } })
    const asked = [
      () => listAll(provider),
      () => readText(provider, 'a.txt'),
      async () => provider.stat?.('a.txt', context),
      async () => provider.stat?.('none/', context),
    ]
    for (const ask of asked)
      await expect(ask()).rejects.toMatchObject({ kind: 'unavailable', message: expect.stringMatching(words) })
    await provider.close?.()
  })

  test('give an error if the bucket does not exist, or is in another region', async () => {
    const nowhere = await open({ bucket: 'elsewhere', keys: store.keys })
    await expect(listAll(nowhere)).rejects.toMatchObject({ message: expect.stringMatching(/no such bucket/) })
    store.intercept = ({ method }, response) => {
      response.writeHead(400, { 'content-type': 'application/xml', 'x-amz-bucket-region': 'eu-west-1' })
      const code = '<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>'
      response.end(method === 'HEAD' ? undefined : code)
      return true
    }
    const away = await open({ keys: store.keys })
    for (const ask of [() => listAll(away), async () => away.stat?.('a.txt', context)])
      await expect(ask()).rejects.toMatchObject({ message: expect.stringMatching(/in another region/) })
  })

  test('give an error if there is neither a region nor an endpoint', async () => {
    const provider = await s3({ bucket: 'drawer', keys: store.keys })
    await expect(listAll(provider)).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/No region is set\. Set "region"/),
    })
  })

  test('are sent to the host name of the bucket if "pathStyle" is false', async () => {
    const provider = await open({
      keys: store.keys,
      pathStyle: false,
      endpoint: store.url.replace('127.0.0.1', 'localhost'),
    })
    // No host of that name is known, or it is this machine, which has the bucket elsewhere.
    await expect(listAll(provider)).rejects.toMatchObject({ kind: 'unavailable' })
    for (const { headers } of store.requests) expect(headers.host).toBe(`drawer.localhost:${store.port}`)
  })
})

describe('the credentials of gcs', () => {
  let store: GcsStandIn
  beforeEach(async () => {
    store = await startGcs()
    store.table.put('a.txt', 'a')
    writeFileSync(folder.at('key.json'), store.keyFile)
  })
  afterEach(() => store.close())

  const open = (options: Partial<Parameters<typeof gcs>[0]> = {}) =>
    gcs({ bucket: store.bucket, endpoint: store.url, ...options })

  test('are the default credentials of the environment', async () => {
    vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', folder.at('key.json'))
    expect(await readText(await open(), 'a.txt')).toBe('a')
  })

  test('give an error if a key is unknown, unreadable, or invalid', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const other = { ...JSON.parse(store.keyFile), private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
    folder.write({
      'other.json': JSON.stringify(other),
      'broken.json': '{"type": "service_account"',
      'empty.json': '{}',
    })
    await expect(listAll(await open({ keyFile: folder.at('other.json') }))).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(/rejects the credentials/),
    })
    for (const name of ['broken.json', 'empty.json', 'none.json'])
      await expect(listAll(await open({ keyFile: folder.at(name) })), name).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/No usable credentials were found/),
      })
  })

  test('are used with the project in "userProject" if the requester pays, and without it the error asks for it', async () => {
    store.payer = 'payer'
    const keyFile = folder.at('key.json')
    await expect(listAll(await open({ keyFile }))).rejects.toMatchObject({
      message: expect.stringMatching(/Set "userProject" to the project that pays/),
    })
    expect(await readText(await open({ keyFile, userProject: 'payer' }), 'a.txt')).toBe('a')
    expect(await listAll(await open({ keyFile, userProject: 'payer' }))).toHaveLength(1)
    await expect(listAll(await open({ keyFile, userProject: 'other' }))).rejects.toMatchObject({ kind: 'unavailable' })
    await expect(listAll(await open({ keyFile, userProject: 'payer', bucket: 'none' }))).rejects.toMatchObject({
      message: expect.stringMatching(/no such bucket/),
    })
  })
})
