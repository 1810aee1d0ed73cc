//! Something for some of many positions, of which the last are needed first and then no more.

const PAGE: usize = 4096;

pub struct Paged<T> {
    pages: Vec<Option<Box<[T; PAGE]>>>,
    /// No longer used, to be used again.
    free: Vec<Box<[T; PAGE]>>,
    /// From this page on nothing is needed any more.
    passed: usize,
}

impl<T: Copy + Default> Paged<T> {
    pub fn up_to(count: usize) -> Paged<T> {
        let pages = count.div_ceil(PAGE);
        Paged { pages: vec![None; pages], free: Vec::new(), passed: pages }
    }

    /// What was put there; something else if nothing was.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T> {
        Some(self.pages.get(index / PAGE)?.as_ref()?[index % PAGE])
    }

    #[inline]
    pub fn put(&mut self, index: usize, value: T) {
        let Paged { pages, free, .. } = self;
        let room = || Box::new([T::default(); PAGE]);
        let page = pages[index / PAGE].get_or_insert_with(|| free.pop().unwrap_or_else(room));
        page[index % PAGE] = value;
    }

    /// Whether some of what is there from here on is still kept.
    #[inline]
    pub fn may_pass(&self, index: usize) -> bool {
        self.passed > index / PAGE + 1
    }

    /// What is there from here on is needed no more.
    pub fn pass(&mut self, index: usize) {
        let page = index / PAGE + 1;
        while self.passed > page {
            self.passed -= 1;
            if let Some(page) = self.pages.get_mut(self.passed).and_then(Option::take) {
                self.free.push(page);
            }
        }
    }

    /// How much memory that takes.
    pub fn size(&self) -> usize {
        let pages = self.pages.iter().flatten().count() + self.free.len();
        size_of_val(self.pages.as_slice()) + pages * PAGE * size_of::<T>()
    }
}
