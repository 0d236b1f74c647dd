//! BM25: scores documents by the words of a query that they contain. Pure.

/// Saturation of a word's repetitions.
const K1: f64 = 1.2;
/// Share of the score that depends on a document's length.
const B: f64 = 0.75;

/// A document, reduced to the words of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Total number of terms, with repetitions.
    pub length: f64,
    /// Number of occurrences of each word that it has, ordered by word.
    pub counts: Vec<(usize, f64)>,
}

impl Document {
    /// Appends `other`.
    pub fn add(&mut self, other: &Self) {
        self.length += other.length;
        for &(word, count) in &other.counts {
            match self.counts.binary_search_by_key(&word, |it| it.0) {
                Ok(at) => self.counts[at].1 += count,
                Err(at) => self.counts.insert(at, (word, count)),
            }
        }
    }
}

/// A field of all documents.
pub struct Field {
    documents: Vec<Document>,
    /// Inverse document frequency of each word.
    pub weights: Vec<f64>,
    mean_length: f64,
    /// Factor that makes the best document's score the field's weight.
    scale: f64,
}

impl Field {
    /// Creates a field of this weight for a query of `words` words.
    pub fn new(weight: f64, documents: Vec<Document>, words: usize) -> Self {
        let (mut frequencies, mut total, mut length) = (vec![0.0_f64; words], 0.0_f64, 0.0);
        for document in documents.iter().filter(|it| it.length > 0.0) {
            total += 1.0;
            length += document.length;
            for &(word, _) in &document.counts {
                frequencies[word] += 1.0;
            }
        }
        let rarity = |with: &f64| (1.0 + (total - with + 0.5) / (with + 0.5)).ln();
        let mut field = Self {
            weights: frequencies.iter().map(rarity).collect(),
            mean_length: length / total.max(1.0),
            scale: 1.0,
            documents,
        };
        let scores = (0..field.documents.len()).map(|index| field.score(index));
        let best = scores.fold(0.0, f64::max);
        field.scale = if best > 0.0 { weight / best } else { 0.0 };
        field
    }

    /// Returns the words that a document has, each with its share of the score.
    pub fn shares(&self, index: usize) -> impl Iterator<Item = (usize, f64)> {
        let document = &self.documents[index];
        let norm = K1 * (1.0 - B + B * document.length / self.mean_length);
        document.counts.iter().map(move |&(word, count)| {
            let share = self.weights[word] * count * (K1 + 1.0) / (count + norm);
            (word, share * self.scale)
        })
    }

    fn score(&self, index: usize) -> f64 {
        self.shares(index).map(|(_, share)| share).sum()
    }
}
