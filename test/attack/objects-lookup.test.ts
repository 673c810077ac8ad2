import dns, { type LookupAddress } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { gcs } from '../../src/providers/gcs/index.ts'
import { s3 } from '../../src/providers/s3/index.ts'
import { listAll } from '../support/object-stores.ts'

/** Addresses of hosts, as whoever answers for their names says. */
const names = new Map<string, readonly LookupAddress[]>()

vi.spyOn(dns, 'lookup').mockImplementation(((
  host: string,
  _: unknown,
  done: (error: Error | null, found: readonly LookupAddress[]) => void,
) => done(null, names.get(host) ?? [{ address: '127.0.0.1', family: 4 }])) as typeof dns.lookup)
syncBuiltinESMExports()
afterAll(() => {
  vi.restoreAllMocks()
  syncBuiltinESMExports()
})
// A machine with other work takes its time.
vi.setConfig({ testTimeout: 120_000 })
afterEach(() => names.clear())

const places: readonly (readonly [what: string, addresses: readonly string[]])[] = [
  ['a cloud metadata service', ['169.254.169.254']],
  ['a cloud metadata service of IPv6', ['fd00:ec2::254']],
  ['a cloud metadata service written as an address of IPv6', ['::ffff:169.254.169.254']],
  ['a cloud metadata service beside another address', ['203.0.113.7', '169.254.169.254']],
]

test.each(places)('no request is sent to a host name that resolves to %s (SS04)', async (_, addresses) => {
  names.set(
    'rebound.example',
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
  )
  for (const scheme of ['http', 'https'])
    for (const open of [s3, gcs]) {
      const endpoint = `${scheme}://rebound.example`
      const provider = await open({ bucket: 'drawer', endpoint, insecure: true, anonymous: true })
      await expect(listAll(provider)).rejects.toMatchObject({
        kind: 'unavailable',
        message: expect.stringMatching(/resolves to a cloud metadata service, and no request is sent to it/),
      })
      await provider.close?.()
    }
})
