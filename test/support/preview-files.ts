import { deflateSync } from 'node:zlib'
import { DatabaseSync } from '@photostructure/sqlite'
import iconv from 'iconv-lite'
import { japanesePdf } from '../fixtures/documents/pdf.ts'

/** Returns one file of each kind that the explorer previews. Active formats contain scripts and links to load. */
export function previewFiles(): Readonly<Record<string, string | Uint8Array>> {
  return {
    'guide.md': guide,
    'code.ts': `/** Adds two numbers. */\nexport function add(a: number, b: number): number {\n  return a + b // 足す\n}\n\nconst text = \`a\n\${add(1, 2)} b\`\n`,
    'long.log': Array.from({ length: 120_000 }, (_, index) => `2026-11-22T04:${index} INFO line ${index + 1}\n`).join(
      '',
    ),
    'plain.txt': '<script>window.ran = true</script>\n<b>not bold</b>\n',
    'data.json': JSON.stringify({
      name: '引き出し',
      nested: { 'a/b': [1, 2.5, null, true], deep: { text: 'x'.repeat(500) } },
      list: Array.from({ length: 2000 }, (_, id) => ({ id, name: `item ${id}` })),
    }),
    'broken.json': '{ "a": 1,\n',
    'events.ndjson': Array.from(
      { length: 50 },
      (_, id) => `${JSON.stringify({ id, kind: 'open', ms: id * 3 })}\n`,
    ).join(''),
    'sales.csv': iconv.encode(
      ['商品,数量,金額', ...Array.from({ length: 300 }, (_, i) => `"りんご, ${i}",${(i * 7) % 100},${i * 120}`)].join(
        '\r\n',
      ),
      'cp932',
    ),
    'big.csv': `id,name,value\n${Array.from({ length: 100_000 }, (_, i) => `${i},name ${i},${(i * 7919) % 100_003}`).join('\n')}\n`,
    'temperature.csv': `time,inside,outside\n${Array.from(
      { length: 96 },
      (_, i) =>
        `${new Date(Date.UTC(2026, 10, 21) + i * 900_000).toISOString()},${(20 + Math.sin(i / 12)).toFixed(2)},${(8 + 4 * Math.cos(i / 15)).toFixed(2)}`,
    ).join('\n')}\n`,
    'picture.png': png(120, 80),
    'drawing.svg':
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 100" width="200" height="100" onload="parent.ran = true"><script>window.ran = true; top.ran = true</script><style>circle { fill: #0b5c8f }</style><circle cx="60" cy="50" r="40"/><text x="110" y="55">図</text></svg>',
    'page.html':
      '<!doctype html><html lang="ja"><head><title>Page</title><style>h1 { color: rgb(0, 92, 143) }</style><script>window.ran = true; top.ran = true</script><link rel="preconnect" href="https://example.org"></head><body onload="top.ran = true"><h1 id="location">見出し</h1><p style="color: rgb(10, 20, 30)">A paragraph.</p><a href="javascript:top.ran = true">x</a><form action="https://example.org"><button>Send</button></form></body></html>',
    'manual.pdf': japanesePdf([['日本語の文書です。', '二行目もあります。'], ['二ページ目。']]),
    'sound.wav': wav(),
    'empty.txt': '',
    'data.bin': Uint8Array.from({ length: 1000 }, (_, index) => (index * 37) % 256),
    'change.diff': 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n',
    'folder/one.txt': 'one\n',
    'folder/二.txt': '二\n',
    'folder/deep/three.txt': 'three\n',
  }
}

const guide = `---
title: 手引き
tags: [a, b]
---

# 引き出しの手引き

これは**日本語**の文書です。[隣の文書](folder/one.txt)と[外](https://example.org/)、[上](#表)、[悪](javascript:window.ran=true)。

<img src="https://example.org/track.png" alt="追跡"> <b onclick="window.ran = true">太字</b> <a id="config" name="location">x</a>
<script>window.ran = true</script><form action="https://example.org"><input name="q"></form>

![図](picture.png) ![遠く](https://example.org/far.png)

## 表

| 名前 | 数 |
|---|---:|
| りんご | 3 |

- [x] 済み
- [ ] まだ

\`\`\`ts
const answer: number = 42
\`\`\`

### 小見出し

おわり。
`

/** Creates a picture with a transparent half. */
function png(width: number, height: number): Buffer {
  const row = Buffer.concat([
    Buffer.from([0]),
    ...Array.from({ length: width }, (_, x) => Buffer.from([11, 92, 143, x < width / 2 ? 255 : 0])),
  ])
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 6, 0, 0, 0], 8)
  const data = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)))
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const ends = Buffer.alloc(8)
  ends.writeUInt32BE(data.length, 0)
  ends.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
}

/** The checksum of PNG (ISO 3309). */
function crc32(data: Buffer): number {
  let crc = 0xffffffff
  for (const byte of data) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}

/** Creates a sound of 8,000 one-byte samples a second, by default a tenth of a second long. */
export function wav(samples = 800): Buffer {
  const data = Buffer.alloc(44 + samples)
  data.write('RIFF', 0, 'latin1')
  data.writeUInt32LE(36 + samples, 4)
  data.write('WAVEfmt ', 8, 'latin1')
  data.writeUInt32LE(16, 16)
  data.writeUInt16LE(1, 20)
  data.writeUInt16LE(1, 22)
  data.writeUInt32LE(8000, 24)
  data.writeUInt32LE(8000, 28)
  data.writeUInt16LE(1, 32)
  data.writeUInt16LE(8, 34)
  data.write('data', 36, 'latin1')
  data.writeUInt32LE(samples, 40)
  for (let i = 0; i < samples; i++) data[44 + i] = 128 + Math.round(60 * Math.sin(i / 3))
  return data
}

/** Creates a database whose tables refer to each other, and `more` tables that refer to one of them. */
export function createShop(file: string, more = 0): void {
  const database = new DatabaseSync(file)
  database.exec(`
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, 住所 TEXT);
    CREATE TABLE products (id INTEGER PRIMARY KEY, title TEXT, price REAL CHECK (price >= 0));
    CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers (id), placed TEXT DEFAULT 'now');
    CREATE TABLE lines (order_id INTEGER REFERENCES orders (id), product INTEGER REFERENCES products (id), count INTEGER, PRIMARY KEY (order_id, product));
    CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT);
    INSERT INTO customers (name, 住所) VALUES ('花子', '東京'), ('Ada', 'London');
  `)
  for (let index = 0; index < more; index++)
    database.exec(
      `CREATE TABLE extra_${index} (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers (id), previous INTEGER REFERENCES ${index === 0 ? 'orders' : `extra_${Math.floor(index / 3)}`} (id))`,
    )
  database.close()
}

/** Returns an answer of the metrics provider with a gap and a peak. */
export function seriesDocument(): string {
  const start = Date.UTC(2026, 10, 21, 9) / 1000
  const points = (scale: number, skip: number) =>
    Array.from({ length: 120 }, (_, i) => [start + i * 30, Math.round(scale * (2 + Math.sin(i / 9 + scale)))]).filter(
      (_, i) => skip === 0 || i < 50 || i > 70,
    )
  const series = [0, 1].map((host) => ({
    labels: { __name__: 'queue_bytes', host: host === 0 ? 'a' : 'b' },
    gaps:
      host === 0
        ? []
        : [
            {
              from: new Date((start + 49 * 30) * 1000).toISOString(),
              to: new Date((start + 71 * 30) * 1000).toISOString(),
            },
          ],
    pointsInAll: 240,
    points: points(1_000_000 * (host + 1), host),
  }))
  return JSON.stringify({ summary: 'queue_bytes: 2 series.', query: 'queue_bytes', unit: 'bytes', step: 30, series })
}
