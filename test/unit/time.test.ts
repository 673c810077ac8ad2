import { expect, test } from 'vitest'
import { formatIsoTime, isSendableTime } from '../../src/server/messages/format.ts'

test.each([
  [0, '1970-01-01T00:00:00.000Z'],
  [-1, '1969-12-31T23:59:59.999Z'],
  [1234.9, '1970-01-01T00:00:01.234Z'],
  [951_782_400_000, '2000-02-29T00:00:00.000Z'],
  [-62_167_219_200_000, '0000-01-01T00:00:00.000Z'],
  [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
])('the time %d is written in UTC with milliseconds: %s', (time, text) => {
  expect(formatIsoTime(time)).toBe(text)
})

test('a time is valid for clients from the year 0 to the year 9999 only', () => {
  for (const time of [undefined, Number.NaN, Number.POSITIVE_INFINITY, -62_167_219_200_001, 253_402_300_800_000])
    expect(isSendableTime(time)).toBe(false)
  expect([isSendableTime(0), isSendableTime(-62_167_219_200_000), isSendableTime(253_402_300_799_999)]).toEqual([
    true,
    true,
    true,
  ])
})
