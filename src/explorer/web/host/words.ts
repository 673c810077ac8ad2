import { createWords } from '../words/texts.ts'

/** Texts of the page inside a host. */
export const t = createWords({
  hint: [
    'Choose something on the left to look at it. The conversation gets everything that you put into the basket.',
    '左から選ぶと、ここに表示されます。バスケットに入れたものは会話に伝わります。',
  ],
  fullscreen: ['Use the whole window', 'ウィンドウ全体に表示'],
  inline: ['Back into the conversation', '会話の中に戻す'],
  gives: ['The conversation gets', '会話に渡すもの'],
  links: ['links', 'リンク'],
  linksHint: [
    'The model is told what was picked, and can read it.',
    '選んだものをモデルに伝えます。モデルは読むことができます。',
  ],
  contents: ['the contents', '内容'],
  contentsHint: ['The text above, within the budget.', '上のものを、上限に収めた文章で渡します。'],
  nothing: ['The conversation has nothing from the basket.', 'バスケットからは何も渡していません。'],
  busy: ['Telling the conversation …', '会話に伝えています …'],
  waiting: ['Once all is counted and fits, the conversation gets it.', '数え終わり、上限に収まると会話に渡します。'],
  hasLinks: ['The conversation has {count} {count:link|links}.', '会話にはリンクが{count}件あります。'],
  hasContents: ['The conversation has the contents: {tokens} tokens.', '会話には内容があります：{tokens}トークン。'],
  failed: ['The conversation could not be updated. {reason}', '会話に伝えられませんでした。{reason}'],
  noContext: [
    'This host accepts nothing from pages. Copy it instead.',
    'このホストはページから何も受け取りません。代わりにコピーしてください。',
  ],
})
