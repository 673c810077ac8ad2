import { describe, expect, test } from 'vitest'
import type { ReadingForm } from '../../src/readings/formats.ts'
import { readDocument } from '../../src/readings/worker.ts'
import { documents } from '../../src/wrap/documents.ts'
import { docx, p } from '../fixtures/documents/office.ts'
import { encode } from '../fixtures/documents/sentences.ts'
import { readOne } from '../support/folder.ts'
import { memory } from '../support/memory.ts'

const limits = { characters: 200_000, unpacked: 20_000_000 }
const read = async (mail: string | Uint8Array, form: ReadingForm = 'text') =>
  (await readDocument({ format: 'mail', form, bytes: Buffer.from(mail), limits })).text

const head =
  'From: =?utf-8?B?5qKF6Zuo?= <rain@example.org>\r\nTo: a@example.org,\r\n "B, C" <b@example.org>\r\n' +
  'Subject: =?iso-2022-jp?B?GyRCMHokLT1QJDcbKEI=?=\r\nDate: Tue, 4 Jun 2024 18:00:00 +0900\r\nMIME-Version: 1.0\r\n'
const shownHead =
  '引き出し\n\nFrom: 梅雨 <rain@example.org>\nTo: a@example.org, B, C <b@example.org>\nDate: 2024-06-04T09:00:00.000Z\n'

let cuts = 0
const parts = (type: string, ...bodies: readonly string[]) => {
  const cut = `cut-${++cuts}`
  return `Content-Type: multipart/${type}; boundary=${cut}\r\n\r\n${bodies.map((body) => `--${cut}\r\n${body}\r\n`).join('')}--${cut}--\r\n`
}
const attached = (name: string, type: string, bytes: Uint8Array | string) =>
  `Content-Type: ${type}\r\nContent-Disposition: attachment; filename="${name}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${Buffer.from(bytes).toString('base64')}`

describe('an email', () => {
  test('is read even if its HTML part has a control character', async () => {
    expect(
      await read('Subject: x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>one\u0001 two\u00e9</p>'),
    ).toContain('two\u00e9')
  })

  test('is read with its headers and its text, whatever their encodings', async () => {
    const quoted = `${head}Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nCaf=E9 au=\r\n lait\r\n\r\nzwei\r\n`
    expect(await read(quoted)).toBe(`${shownHead}\nCafé au lait\n\nzwei\n`)
    const declared = Buffer.concat([
      Buffer.from(`${head}Content-Type: text/plain; charset=Shift_JIS\r\n\r\n`),
      encode('引き出しを説明する。', 'shift_jis'),
    ])
    expect(await read(declared)).toBe(`${shownHead}\n引き出しを説明する。\n`)
    const undeclared = Buffer.concat([
      Buffer.from('Subject: x\r\n\r\n'),
      encode('設定ファイルを変更した後は、再起動する。', 'euc-jp'),
    ])
    expect(await read(undeclared)).toBe('x\n\n設定ファイルを変更した後は、再起動する。\n')
  })

  test('is read once, as its HTML part, if it has its text twice', async () => {
    const mail = `${head}${parts('alternative', 'Content-Type: text/plain\r\n\r\nplain words', 'Content-Type: text/html\r\n\r\n<p>shown <b>words</b></p>')}`
    expect(await read(mail)).toBe(`${shownHead}\nshown words\n`)
    expect(await read(mail, 'markdown')).toContain('# 引き出し\n\nFrom: 梅雨 \\<rain@example.org\\>\\\nTo:')
    expect(await read(mail, 'markdown')).toContain('shown **words**')
  })

  test('has its attachments as parts: documents, texts and emails by content, others by name', async () => {
    const inner = `${head}${parts('mixed', 'Content-Type: text/plain\r\n\r\ninner text', attached('x.txt', 'text/plain', '梅雨'))}`
    const mail = `${head}${parts(
      'mixed',
      'Content-Type: text/plain\r\n\r\nouter text',
      attached('計画.docx', 'application/octet-stream', docx({ body: p('文書の中') })),
      attached('cut.docx', 'application/octet-stream', docx().subarray(0, 300)),
      attached('photo.png', 'image/png', Buffer.from([1, 2, 3])),
      `Content-Type: message/rfc822\r\n\r\n${inner}`,
    )}`
    const bytes = Buffer.from(mail)
    const reading = await readDocument({ format: 'mail', form: 'markdown', bytes, limits })
    expect(reading).toMatchObject({ parts: 5, title: '引き出し' })
    expect(reading.text).toContain('outer text\n\n## Attachment: 計画.docx\n\n文書の中\n')
    expect(reading.text).toContain('## Attachment: cut.docx\n\n\\[The document is damaged')
    expect(reading.text).toContain('## Attachment: photo.png\n\n## Attachment: message/rfc822\n\n### 引き出し')
    expect(reading.text).toContain('inner text\n\n## Attachment: x.txt\n\n```\n梅雨\n```')
  })

  test('with messages in messages is read up to a depth, and hundreds of nested parts or thousands of attachments are refused', async () => {
    let nested = 'Subject: deepest\r\n\r\ndeepest text'
    for (let at = 0; at < 8; at++) nested = `Subject: level ${at}\r\nContent-Type: message/rfc822\r\n\r\n${nested}`
    expect(await read(nested)).toContain('nested too deep')
    let misnamed = 'Subject: x\r\nMIME-Version: 1.0\r\n\r\ndeepest text'
    for (let at = 0; at < 8; at++)
      misnamed = `MIME-Version: 1.0\r\nContent-Type: application/x; name="a.docx"\r\nContent-Disposition: attachment\r\n\r\n${misnamed}`
    expect(await read(misnamed)).toContain('nested too deep')
    let deep = 'Content-Type: text/plain\r\n\r\nx'
    for (let at = 0; at < 500; at++)
      deep = `Content-Type: multipart/mixed; boundary=b${at}\r\n\r\n--b${at}\r\n${deep}\r\n--b${at}--\r\n`
    await expect(read(`MIME-Version: 1.0\r\n${deep}`)).rejects.toMatchObject({ kind: 'invalid' })
    const many = parts('mixed', ...Array.from({ length: 3000 }, (_, at) => attached(`${at}.bin`, 'application/x', 'x')))
    await expect(read(`MIME-Version: 1.0\r\n${many}`)).rejects.toMatchObject({ kind: 'too-large' })
  })

  test('with the contents of another format is refused, or read in that format', async () => {
    await expect(read('no headers at all\n')).rejects.toMatchObject({
      message: expect.stringContaining('not a mail'),
      detail: { reason: 'unreadable' },
    })
    expect(await read('<!doctype html><p>a page</p>')).toBe('a page\n')
  })
})

test('a web page that was saved as MHTML is read without its styles and pictures', async () => {
  const saved = `From: <Saved by a browser>\r\nSubject: A page\r\nMIME-Version: 1.0\r\n${parts(
    'related',
    'Content-Type: text/html; charset=utf-8\r\nContent-Location: https://example.org/\r\n\r\n<h1>Head</h1><img src="a.png" alt="sign">',
    'Content-Type: text/css\r\nContent-Location: https://example.org/a.css\r\n\r\np { color: red }',
    'Content-Type: image/png\r\nContent-Location: https://example.org/a.png\r\nContent-Transfer-Encoding: base64\r\n\r\nAQID',
  )}`
  const text = await read(saved, 'markdown')
  expect(text).toContain('# Head\n\n![sign]()')
  expect(text).not.toMatch(/color|Attachment/)
})

test('a mailbox is read message by message, and a line of prose that begins with "From" begins none', async () => {
  const box = [
    'From a@b Tue Jun  4 18:00:00 2024\nSubject: one\n\nfirst\n>From the start\n\nFrom here on: prose.\nMore of it.\n\nFrom Kyoto with love\nYear: 1963\n',
    'From c@d\nSubject: two\n\nsecond\n',
  ]
  const bytes = Buffer.from(box.join('\n'))
  const reading = await readDocument({ format: 'mail', form: 'text', bytes, limits })
  expect(reading).toEqual({
    parts: 2,
    text: 'one\n\nfirst\nFrom the start\n\nFrom here on: prose.\nMore of it.\n\nFrom Kyoto with love\nYear: 1963\n\ntwo\n\nsecond\n',
  })
  expect(await read(`\ufeff${box.join('\n')}`)).toBe(reading.text)
})

test('an email with spaces before the colons of its headers is read', async () => {
  expect(await read('Subject : Rain\r\n\r\nIn June.')).toBe('Rain\n\nIn June.\n')
})

test('an email with a byte order mark is read, and so is its report of a failed delivery', async () => {
  const report = 'Content-Type: message/delivery-status\r\n\r\nAction: failed\r\nStatus: 5.1.1'
  const mail = `Subject: Undelivered\r\n${parts('report', 'Content-Type: text/plain\r\n\r\nNot delivered.', report)}`
  expect(await read(`\ufeff${mail}`)).toBe(
    'Undelivered\n\nNot delivered.\n\nAttachment: message/delivery-status\n\nAction: failed\nStatus: 5.1.1\n',
  )
})

test('an email in a folder is read in the encodings that it declares, and its source stays text', async () => {
  const bytes = Buffer.concat([
    Buffer.from('Subject: =?koi8-r?Q?=F0=D2=C9=D7=C5=D4?=\r\nContent-Type: text/plain; charset=koi8-r\r\n\r\n'),
    Buffer.from([0xf0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4]),
  ])
  const provider = documents(memory({ 'a.eml': { bytes, mimeType: 'message/rfc822', version: '1' } }))
  expect(await readOne(provider, 'a.eml', { params: { as: 'text' } })).toMatchObject({
    text: 'Привет\n\nПривет\n',
    title: 'Привет',
  })
  expect('text' in (await readOne(provider, 'a.eml'))).toBe(true)
  await provider.close?.()
})
