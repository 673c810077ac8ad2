import { createWords } from '../words/texts.ts'

/** Texts of the page inside a host. */
export const t = createWords({
  hint: [
    'Choose something on the left to see it here. The conversation gets everything that you add to the basket.',
    '左で選んだものが、ここに表示されます。バスケットに追加したものは会話に渡されます。',
  ],
  fullscreen: ['Use the whole window', 'ウィンドウ全体に表示'],
  inline: ['Back to the conversation', '会話に戻す'],
  gives: ['The conversation gets', '会話に渡すもの'],
  links: ['links', 'リンク'],
  linksHint: [
    'The model gets links to the resources in the basket, and can read them.',
    'バスケットのリソースへのリンクを渡します。モデルは必要に応じて読み取れます。',
  ],
  contents: ['the contents', '内容'],
  contentsHint: [
    'The model gets the contents of the basket, within the budget.',
    'バスケットの内容を、予算内に収めて渡します。',
  ],
  nothing: ['The conversation has nothing from the basket.', 'バスケットからは何も渡していません。'],
  busy: ['Updating the conversation…', '会話に渡しています…'],
  waiting: [
    'The conversation gets the contents when they are counted and fit the budget.',
    'トークンを数え終え、予算に収まると会話に渡します。',
  ],
  hasLinks: ['The conversation has {count} {count:link|links}.', '会話にリンクを {count} 件渡しました。'],
  hasContents: [
    'The conversation has the contents: {tokens} {tokens:token|tokens}.',
    '会話に内容を渡しました（{tokens} トークン）。',
  ],
  failed: ['The conversation could not be updated: {reason}', '会話に渡せませんでした: {reason}'],
  copyFailed: ['The host did not let the page copy.', 'ホストがコピーを許可しませんでした。'],
  noContext: [
    'This host accepts no context from pages. Copy the basket instead.',
    'このホストはページからのコンテキストを受け付けません。代わりにバスケットをコピーしてください。',
  ],
})
