import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { clientNetworkOf, createAddressRateLimits } from '../../src/server/admission/connections.ts'
import { completeLimits } from '../../src/server/admission/limits.ts'

const socketFrom = (remoteAddress: string | undefined) => Object.assign(new EventEmitter(), { remoteAddress }) as Socket
const create = (given: { newConnections?: number; badTokens?: number }) =>
  createAddressRateLimits(completeLimits(given, false))

describe('the address of a client', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ])('%j counts as %j', (address, network) => {
    expect(clientNetworkOf(address)).toBe(network)
  })

  test('is still known when the connection is closed', () => {
    const addresses = create({})
    const socket = socketFrom('192.0.2.1')
    expect(addresses.of(socket)).toBe('192.0.2.1')
    Object.assign(socket, { remoteAddress: undefined })
    expect(addresses.of(socket)).toBe('192.0.2.1')
  })
})

describe('limits for one address', () => {
  test('on new connections count each address alone', () => {
    const addresses = create({ newConnections: 1 })
    const open = (address: string) => addresses.connect(socketFrom(address))
    for (let i = 0; i < 10; i++) expect(open('192.0.2.1')).toBe(0)
    expect(open('192.0.2.1')).toBeGreaterThan(0)
    expect(open('192.0.2.2')).toBe(0)
  })

  test('on bad tokens apply after a burst of bad tokens, and not to new connections', () => {
    const addresses = create({ badTokens: 2 })
    const socket = socketFrom('192.0.2.1')
    for (let i = 0; i < 20; i++) expect(addresses.fail(socket)).toBe(0)
    expect(addresses.fail(socket)).toBeGreaterThan(0)
    expect(addresses.connect(socket)).toBe(0)
  })

  test('of 0 mean no limit', () => {
    const addresses = create({ newConnections: 0, badTokens: 0 })
    const socket = socketFrom('192.0.2.1')
    for (let i = 0; i < 10_000; i++) expect(addresses.connect(socket) + addresses.fail(socket)).toBe(0)
  })
})
