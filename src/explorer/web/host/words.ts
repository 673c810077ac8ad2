import { createWords } from '../words/texts.ts'

/** Words of the page inside of a host. */
export const t = createWords(
  {
    hint: 'Choose something on the left to look at it. What you put into the basket becomes known to the conversation.',
    fullscreen: 'Use the whole window',
    inline: 'Back into the conversation',
    gives: 'The conversation gets',
    links: 'links',
    linksHint: 'The model is told what was picked, and can read it.',
    contents: 'the contents',
    contentsHint: 'The text above, within the budget.',
    nothing: 'The conversation has nothing from the basket.',
    busy: 'Telling the conversation …',
    waiting: 'Once all is counted and fits, the conversation gets it.',
    hasLinks: 'The conversation has {count} {count:link|links}.',
    hasContents: 'The conversation has the contents: {tokens} tokens.',
    failed: 'The conversation could not be told. {reason}',
    noContext: 'This host does not take anything from pages. Copy it instead.',
  },
  {
    hint: '左から選ぶと、ここに表示されます。バスケットに入れたものは会話に伝わります。',
    fullscreen: 'ウィンドウ全体に表示',
    inline: '会話の中に戻す',
    gives: '会話に渡すもの',
    links: 'リンク',
    linksHint: '選んだものをモデルに伝えます。モデルは読むことができます。',
    contents: '内容',
    contentsHint: '上のものを、上限に収めた文章で渡します。',
    nothing: 'バスケットからは何も渡していません。',
    busy: '会話に伝えています …',
    waiting: '数え終わり、上限に収まると会話に渡します。',
    hasLinks: '会話にはリンクが{count}件あります。',
    hasContents: '会話には内容があります：{tokens}トークン。',
    failed: '会話に伝えられませんでした。{reason}',
    noContext: 'このホストはページから何も受け取りません。代わりにコピーしてください。',
  },
)
