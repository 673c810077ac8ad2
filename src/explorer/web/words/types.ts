import { language } from './texts.ts'

/** Names of types that are words, and not names of formats, in Japanese. */
const japanese: Readonly<Record<string, string>> = {
  Binary: 'バイナリ',
  Calendar: 'カレンダー',
  Diff: '差分',
  Hits: '検索結果',
  Log: 'ログ',
  Mail: 'メール',
  Notebook: 'ノートブック',
  Rows: '行',
  Series: '時系列',
  Subtitles: '字幕',
  Table: '表',
  Tables: '表の一覧',
  Text: 'テキスト',
}

export function typeWord(name: string): string {
  return language.value === 'ja' ? (japanese[name] ?? name) : name
}
